/* pictures: what of an answer is drawn or tabled here. The figures are the answer's own. */
"use strict";

/* The list of an answer that is its table, the first that there is. */
const TABLES = ["plans", "frontier", "sizes", "points", "alternatives", "ops", "rows", "chips", "models", "fleet", "statistics",
  "groups", "collectives"];

function tableOf(answer) {
  const key = TABLES.find((name) => Array.isArray(answer[name]) && answer[name].length && typeof answer[name][0] === "object");
  return key ? {name: key, rows: answer[key].map((row) => flat(row, ""))} : null;
}

function flat(record, prefix) {
  const out = {};
  for (const [key, value] of Object.entries(record)) {
    if (Array.isArray(value)) {
      if (!value.some((item) => item && typeof item === "object")) value.forEach((item, i) => { out[`${prefix}${key}.${i}`] = item; });
    } else if (value && typeof value === "object") Object.assign(out, flat(value, prefix + key + "."));
    else out[prefix + key] = value;
  }
  return out;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  made.append(...children);
  return made;
}

function drawTable(table) {
  const columns = [...new Set(table.rows.flatMap((row) => Object.keys(row)))];
  const cell = (value) => element("td", {class: typeof value === "number" && "number",
    text: value === null || value === undefined ? "" : typeof value === "number" ? String(+value.toPrecision(6)) : String(value),
    title: typeof value === "number" && String(value)});
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${table.name}`},
    element("table", {},
      element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", {scope: "col", text: name})))),
      element("tbody", {}, ...table.rows.map((row) => element("tr", {}, ...columns.map((name) => cell(row[name])))))));
}

/* ---- pictures, as SVG ---- */
const COLOURS = ["--a", "--b", "--c", "--d", "--e", "--f", "--g", "--h"];
const colourOf = (i) => `var(${COLOURS[i % COLOURS.length]})`;

function inSeconds(value) {
  const [scale, unit] = value >= 1 ? [1, "s"] : value >= 1e-3 ? [1e-3, "ms"] : [1e-6, "us"];
  return `${+(value / scale).toPrecision(3)} ${unit}`;
}
const inBytes = (value) => (value >= 1e9 ? `${+(value / 1e9).toPrecision(3)} GB` : value >= 1e6 ? `${+(value / 1e6).toPrecision(3)} MB` : `${+(value / 1e3).toPrecision(3)} kB`);

function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const label = (x, y, text, more = "") => svg("text", {x, y, style: `fill: var(--ink); font: 12px sans-serif; ${more}`}, text);

/* Pictures are drawn for the width that there is, so that their words keep their size. */
const widthHere = () => Math.max(300, Math.min(900, ($("view") && $("view").clientWidth) || 900));

/* What each colour means, in rows of the width; [parts, height]. */
function legend(names, width) {
  const parts = [];
  let x = 0, y = 0;
  names.forEach((name, i) => {
    const size = 32 + 7 * name.length;
    if (x && x + size > width) { x = 0; y += 18; }
    parts.push(svg("rect", {x, y: y + 2, width: 10, height: 10, rx: 2, style: `fill: ${colourOf(i)}`}), label(x + 14, y + 11, name));
    x += size;
  });
  return [parts, y + 20];
}

/* A figure: its title, the picture, what it tells in words, and the records that it is drawn of. */
function figureOf(name, title, about, width, height, parts, rows, ...more) {
  const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": about, style: "max-width: 100%; height: auto"}, ...parts);
  return element("div", {class: "figure"}, element("h2", {text: title}), picture, saveFigure(name, picture, rows), ...more);
}

/* Of each row a bar of the parts of a whole, below the row's name. */
function bars(name, title, rows, parts, whole, shown) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(parts(row))))], words = names.map((key) => key.replace(/_/g, " "));
  const most = Math.max(...rows.map(whole)), width = widthHere(), [drawn, top] = legend(words, width), across = Math.floor(width / 6.7);
  let y = top + 6;
  for (const row of rows) {
    const told = row.plan.match(new RegExp(`.{1,${across}}(,|$)|.{1,${across}}`, "g")) || [];
    told.forEach((text) => { drawn.push(label(0, y + 11, text)); y += 15; });
    let x = 0;
    names.forEach((key, i) => {
      const size = width * (parts(row)[key] || 0) / most;
      if (size > 0) drawn.push(svg("rect", {x, y, width: size, height: 22, style: `fill: ${colourOf(i)}`}, svg("title", {}, `${words[i]} ${shown(parts(row)[key])}`)));
      x += size;
    });
    drawn.push(svg("rect", {x: 0.5, y: y + 0.5, width: width - 1, height: 21, style: "fill: none; stroke: var(--line)"}));
    y += 34;
  }
  const about = rows.map((row) => `${row.plan}: ${names.map((key, i) => `${words[i]} ${shown(parts(row)[key] || 0)}`).join(", ")}`).join("; ");
  return figureOf(name, title, about, width, y, drawn, rows.map((row) => ({plan: row.plan, ...parts(row)})));
}

function without(record, ...names) {
  return Object.fromEntries(Object.entries(record || {}).filter(([name, value]) => !names.includes(name) && typeof value === "number"));
}

/* Where the step of each plan goes, and what lies in a chip. */
function drawTraining(answer) {
  const plans = answer.plans.filter((plan) => plan.breakdown_s);
  if (!plans.length) return null;
  return element("div", {},
    bars("breakdown", "Where a step goes", plans, (p) => without(p.breakdown_s), (p) => Object.values(without(p.breakdown_s)).reduce((a, b) => a + b, 0), inSeconds),
    bars("memory", "Memory of the fullest chip; the frame is all it has", plans, (p) => without(p.memory_bytes, "total", "capacity", "host", "host_capacity"),
      (p) => p.memory_bytes.capacity, inBytes));
}

/* ---- systems ---- */

/* The chips that share a link of a level and their places in it: every chip of a system as its place of each level. */
const chipsOf = (shown) => shown.reduce((all, n) => all.flatMap((p) => [...Array(n).keys()].map((k) => [...p, k])), [[]]);

/* The places of a level that one group of an axis covers, from the first: of {level, size, stride} the multiples of the stride. */
const placesOf = (axis, level) => {
  const part = (axis.parts || []).find((one) => one.level === level);
  return part ? [...Array(part.size).keys()].map((i) => i * part.stride) : [0];
};

/* The system, or a part of it, with the axes of a mesh: of a torus each dimension's links in the colours of the axes that lie on
 * it; of switches the tree. `moves` {axes, text}: a collective, whose links stand out, and the chips of one of its groups. */
function drawTopology(system, mesh, moves) {
  const torus = system.levels[0] === system.levels[1] || system.levels.length === 1 && /^ici/.test(system.levels[0]);
  const dims = torus ? system.levels.filter((level) => level === system.levels[0]).length : 0;
  const shown = system.shape.map((n, d) => (torus ? (d < dims ? Math.min(n, 5) : 1) : Math.min(n, d === 0 ? 8 : system.shape.length > 2 ? 2 : 4)));
  const onto = (d) => mesh.filter((axis) => (axis.parts || []).some((part) => part.level === d && part.size > 1));
  const colour = (axis) => colourOf(mesh.indexOf(axis));
  const moved = (axis) => !moves || moves.axes.includes(axis.axis), over = moves ? mesh.filter(moved) : [];
  const stroke = (axis, width) => ({"stroke-width": moves && axis && moved(axis) ? width + 3 : width,
    style: `stroke: ${axis ? colour(axis) : "var(--line)"}; opacity: ${!axis || moved(axis) ? 1 : 0.25}`});
  const inGroup = (p) => moves && p.every((k, d) => (over.some((axis) => placesOf(axis, d).length > 1)
    ? over.some((axis) => placesOf(axis, d).length > 1 && placesOf(axis, d).includes(k)) : k === 0));
  const chip = (x, y, r, p) => svg("circle", {cx: x, cy: y, r: inGroup(p) ? r + 2 : r, class: inGroup(p) ? "member" : "chip",
    style: `fill: var(${inGroup(p) ? "--ink" : "--paper"}); stroke: var(--ink)`});
  const told = (d) => `${torus && d < dims ? "dimension " + d : system.levels[d]}: ${system.shape[d]} (${onto(d).map((axis) => axis.axis).join(", ") || "no axis"})`;
  const room = widthHere(), [parts, top] = legend(mesh.map((axis) => `${axis.axis} ${axis.size}`), room), step = [[56, 0], [0, 56], [24, -20]];
  let width, height;
  if (torus) {
    const at = (p) => p.slice(0, 3).reduce(([x, y], k, d) => [x + k * step[d][0], y + k * step[d][1]], [20, top + 12 + 20 * ((dims > 2 ? shown[2] : 1) - 1)]);
    for (const p of chipsOf(shown)) for (let d = 0; d < dims; d++) {
      if (p[d] + 1 >= shown[d]) continue;
      const [from, to] = [at(p), at(p.map((k, i) => (i === d ? k + 1 : k)))], axes = onto(d).length ? onto(d) : [null];
      axes.forEach((axis, i) => {
        const [a, b] = [i / axes.length, (i + 1) / axes.length].map((t) => from.map((v, j) => v + (to[j] - v) * t));
        parts.push(svg("line", {x1: a[0], y1: a[1], x2: b[0], y2: b[1], ...stroke(axis, 5)}));
      });
    }
    for (const p of chipsOf(shown)) parts.push(chip(...at(p), 7, p));
    width = 40 + (shown[0] - 1) * 56 + (dims > 2 ? (shown[2] - 1) * 24 : 0);
    height = top + 32 + (dims > 1 ? (shown[1] - 1) * 56 : 0) + (dims > 2 ? (shown[2] - 1) * 20 : 0);
  } else {
    /* From the chips up: a switch over its children, each link in the colour of one of the level's axes. */
    let row = chipsOf([...shown].reverse()).map((p, i) => ({x: 20 + i * 20, p: p.reverse(), member: inGroup(p)})), y = top + 20 + 70 * shown.length;
    width = 20 + 20 * row.length;
    height = y + 20;
    const chips = row.map(({x, p}) => chip(x, y, 6, p));
    shown.forEach((n, d) => {
      const axes = onto(d), above = [];
      for (let i = 0; i < row.length; i += n) {
        const children = row.slice(i, i + n), x = (children[0].x + children[n - 1].x) / 2;
        children.forEach((child, j) => {
          const axis = (moves && axes.find(moved)) || axes[j % axes.length] || null;
          parts.push(svg("line", {x1: child.x, y1: y, x2: x, y2: y - 70, ...stroke(axis, 4), ...(moves && !child.member ? {"stroke-width": 2} : {})}));
        });
        above.push({x, member: children.some((child) => child.member)});
      }
      above.forEach(({x}) => parts.push(svg("rect", {x: x - 16, y: y - 78, width: 32, height: 16, rx: 4, style: "fill: var(--tint); stroke: var(--ink)"})));
      row = above;
      y -= 70;
    });
    parts.push(...chips);
  }
  const about = [...system.shape.map((_, d) => told(d)), ...(moves ? [moves.text] : [])].join("; ");
  const rows = mesh.map((axis) => ({axis: axis.axis, size: axis.size, on: axis.on, moves: moves ? moved(axis) : ""}));
  return figureOf("topology", `${system.name}${shown.some((n, d) => n < system.shape[d]) ? ", a part of it" : ""}`, about, Math.max(width, room), height, parts, rows,
    element("ul", {}, ...system.shape.map((_, d) => element("li", {text: told(d)}))));
}

/* The system with a list of collectives: the one that is chosen is drawn on it. {axes, text} of each. */
function drawCollectives(system, mesh, collectives, at, chosen) {
  const box = element("div"), told = element("p", {role: "status"});
  const show = (i) => {
    box.replaceChildren(drawTopology(system, mesh, collectives[i]));
    told.textContent = collectives[i] ? `${collectives[i].text}. Black: the chips of one group.` : "";
  };
  const select = element("select", {"aria-label": "A collective, drawn on the system", onchange: () => { show(select.value); chosen(select.value); }},
    element("option", {value: "", text: "All axes; choose a collective"}), ...collectives.map((one, i) => element("option", {value: String(i), text: one.text})));
  select.value = collectives[at] ? at : "";
  show(select.value);
  return element("div", {class: "figure"}, ...(collectives.length ? [select, told] : []), box);
}

/* Of an answer with a mesh its collectives: those of the best plan, the steps of a product, or the one that was asked. */
function collectivesOf(data) {
  const named = (axes, mesh) => mesh.filter((one) => String(axes).split(",").includes(one.axis) || (!String(axes).includes(",") && mesh.every((m) => m.axis.length === 1) && String(axes).includes(one.axis)))
    .map((one) => one.axis);
  if (data.command === "collective") return [{axes: named(data.over, data.mesh), text: `${data.op} over ${data.over}, ${data.members} chips a group: ${inSeconds(data.time_s.expected)}` +
    `, ${inBytes(data.bytes_busiest_link)} over the busiest link, by ${data.algorithm}`}];
  if (data.command === "matmul") return data.best.steps.filter((one) => one.axes).map((one) => ({axes: named(one.axes, data.mesh),
    text: `${one.op} of ${one.array} over ${one.axes}: ${inSeconds(one.time_s)}, ${inBytes(one.bytes_busiest_link)} over the busiest link, by ${one.algorithm}`}));
  const plan = data.plans[0];
  return plan.collectives.map((one) => ({axes: named(one.axis, plan.mesh), text: `${one.op} of ${one.array} over ${one.axis}, ${one.phase}: ${one.count} times, ` +
    `${inSeconds(one.time_s)} (${inSeconds(one.exposed_s)} of it shown), ${inBytes(one.bytes_per_chip)} each`}));
}

/* Of the slices of a lane those that can be seen at a width: where several lie in one pixel, the longest of them. */
function visible(slices, pixel) {
  const seen = new Map(), wide = [];
  for (const e of slices) {
    const at = Math.floor(e.ts / pixel), other = seen.get(at);
    if (e.dur >= pixel) wide.push(e);
    else if (!other || other.dur < e.dur) seen.set(at, e);
  }
  return [...wide, ...seen.values()];
}

/* Slices of a trace in Chrome's form: a lane for each thread, at most 32 of them. */
function drawTimeline(trace) {
  const names = new Map(trace.traceEvents.filter((e) => e.name === "thread_name").map((e) => [e.tid, e.args.name]));
  const slices = trace.traceEvents.filter((e) => e.ph === "X" && e.tid < 32), kinds = [...new Set(slices.map((e) => e.cat))];
  const last = Math.max(...slices.map((e) => e.ts + e.dur)), lanes = [...new Set(slices.map((e) => e.tid))].sort((a, b) => a - b);
  const nameOf = (tid) => names.get(tid) || String(tid), left = 10 + 6.4 * Math.max(...lanes.map((tid) => nameOf(tid).length)), width = widthHere();
  const pixel = last / (width - left - 4), [parts, top] = legend(kinds, width);
  lanes.forEach((tid, i) => {
    for (const e of visible(slices.filter((one) => one.tid === tid), pixel)) parts.push(svg("rect", {x: left + e.ts / pixel, y: top + 4 + 24 * i, width: Math.max(0.7, e.dur / pixel), height: 18,
      style: `fill: ${colourOf(kinds.indexOf(e.cat))}` + (e.dur > 3 * pixel ? "; stroke: var(--paper); stroke-width: .5" : "")}, svg("title", {}, `${e.name}: ${inSeconds(e.dur / 1e6)}`)));
    parts.push(label(0, top + 18 + 24 * i, nameOf(tid)));
  });
  return figureOf("timeline", `Timeline: ${inSeconds(last / 1e6)}`, `Timeline of ${lanes.length} lanes: ${kinds.join(", ")}`, width, top + 8 + 24 * lanes.length, parts,
    slices.map((e) => ({lane: nameOf(e.tid), name: e.name, kind: e.cat, start_s: e.ts / 1e6, time_s: e.dur / 1e6})));
}

/* A chart of the library, which escapes every text in it. */
function drawChart(chart) {
  const box = element("div", {class: "picture"});
  box.innerHTML = chart;
  return box;
}

/* What is drawn here of an answer whose verb draws nothing; null where there is no such picture. */
function drawPicture(answer) {
  return answer.command === "train" && answer.plans ? drawTraining(answer) : null;
}

if (typeof module !== "undefined") module.exports = {tableOf, flat};

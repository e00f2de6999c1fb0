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

/* ---- bars: of each row the parts of a whole ---- */
const COLOURS = ["--a", "--b", "--c", "--d", "--e", "--f"];

function inSeconds(value) {
  const [scale, unit] = value >= 1 ? [1, "s"] : value >= 1e-3 ? [1e-3, "ms"] : [1e-6, "us"];
  return `${+(value / scale).toPrecision(3)} ${unit}`;
}
const inBytes = (value) => (value >= 1e9 ? `${+(value / 1e9).toPrecision(3)} GB` : `${+(value / 1e6).toPrecision(3)} MB`);

function bars(title, rows, parts, whole, shown) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(parts(row))))];
  const most = Math.max(...rows.map((row) => whole(row)));
  const coloured = (i) => `background: var(${COLOURS[i % COLOURS.length]})`;
  const made = element("div", {class: "bars", role: "group", "aria-label": title}, element("h2", {text: title}));
  made.append(element("div", {class: "legend"}, ...names.map((name, i) =>
    element("span", {}, element("b", {style: coloured(i)}), name.replace(/_/g, " ")))));
  for (const row of rows) {
    const told = names.map((name) => `${name.replace(/_/g, " ")} ${shown(parts(row)[name] || 0)}`).join(", ");
    made.append(element("div", {},
      element("h3", {text: row.plan}),
      element("div", {class: "bar", role: "img", "aria-label": told, title: told}, ...names.map((name, i) =>
        element("i", {style: `width: ${100 * (parts(row)[name] || 0) / most}%; ${coloured(i)}`})))));
  }
  return made;
}

function without(record, ...names) {
  return Object.fromEntries(Object.entries(record || {}).filter(([name, value]) => !names.includes(name) && typeof value === "number"));
}

/* Where the step of each plan goes, and what lies in a chip. */
function drawTraining(answer) {
  const plans = answer.plans.filter((plan) => plan.breakdown_s);
  if (!plans.length) return null;
  return element("div", {},
    bars("Where a step goes", plans, (p) => without(p.breakdown_s), (p) => Object.values(without(p.breakdown_s)).reduce((a, b) => a + b, 0), inSeconds),
    bars("Memory of the fullest chip; the frame is all it has", plans, (p) => without(p.memory_bytes, "total", "capacity", "host", "host_capacity"),
      (p) => p.memory_bytes.capacity, inBytes));
}

/* The system, or a part of it, with the axes of a mesh: of a torus each dimension's links in the colours of the axes
 * that lie on it; of switches the tree. */
function drawTopology(system, mesh) {
  const svg = (name, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const colour = (axis) => `var(${COLOURS[mesh.indexOf(axis) % COLOURS.length]})`;
  const torus = system.levels.every((level) => level === system.levels[0]) && system.levels[0] === "ici";
  const onto = (d) => mesh.filter((axis) => String(axis.on).split(",").includes(torus ? String(d) : system.levels[d]));
  const told = (d) => `${torus ? "dimension " + d : system.levels[d]}: ${system.shape[d]} (${onto(d).map((axis) => axis.axis).join(", ") || "no axis"})`;
  const parts = [], step = [[56, 0], [0, 56], [24, -20]], shown = system.shape.map((n) => Math.min(n, 5));
  if (torus) {
    const at = (p) => p.reduce(([x, y], k, d) => [x + k * step[d][0], y + k * step[d][1]], [20, 20 + 20 * (shown[2] || 1)]);
    const points = shown.reduce((all, n) => all.flatMap((p) => [...Array(n).keys()].map((k) => [...p, k])), [[]]);
    for (const p of points) for (let d = 0; d < p.length; d++) {
      if (p[d] + 1 >= shown[d]) continue;
      const [from, to] = [at(p), at(p.map((k, i) => (i === d ? k + 1 : k)))], axes = onto(d), n = axes.length || 1;
      for (let i = 0; i < n; i++) {
        const mix = (t) => from.map((v, j) => v + (to[j] - v) * t), [a, b] = [mix(i / n), mix((i + 1) / n)];
        parts.push(svg("line", {x1: a[0], y1: a[1], x2: b[0], y2: b[1], "stroke-width": 5,
          style: `stroke: ${axes.length ? colour(axes[i]) : "var(--line)"}`}));
      }
    }
    for (const p of points) parts.push(svg("circle", {cx: at(p)[0], cy: at(p)[1], r: 7, style: "fill: var(--paper); stroke: var(--ink)"}));
  } else {
    /* From the chips up: a switch over its children, each link in the colour of one of the level's axes. */
    const many = system.shape.map((n, d) => Math.min(n, d === 0 ? 8 : system.shape.length > 2 ? 2 : 4));
    let row = [...Array(many.reduce((a, b) => a * b, 1)).keys()].map((i) => 20 + i * 20), y = 40 + 70 * many.length;
    row.forEach((x) => parts.push(svg("circle", {cx: x, cy: y, r: 6, style: "fill: var(--paper); stroke: var(--ink)"})));
    many.forEach((n, d) => {
      const axes = onto(d), above = [];
      for (let i = 0; i < row.length; i += n) {
        const children = row.slice(i, i + n), x = (children[0] + children[n - 1]) / 2;
        children.forEach((child, j) => parts.unshift(svg("line", {x1: child, y1: y, x2: x, y2: y - 70, "stroke-width": 4,
          style: `stroke: ${axes.length ? colour(axes[j % axes.length]) : "var(--line)"}`})));
        parts.push(svg("rect", {x: x - 16, y: y - 78, width: 32, height: 16, rx: 4, style: "fill: var(--tint); stroke: var(--ink)"}));
        above.push(x);
      }
      row = above;
      y -= 70;
    });
    shown.splice(0, shown.length, ...many);
  }
  const across = (d) => (shown[0] - 1) * step[0][d] + ((shown[1] || 1) - 1) * step[1][d] + ((shown[2] || 1) - 1) * Math.abs(step[2][d]) + 40;
  const [width, height] = torus ? [across(0), across(1) + 20] : [20 + 20 * shown.reduce((a, b) => a * b, 1), 60 + 70 * shown.length];
  const about = system.shape.map((_, d) => told(d)).join("; ");
  return element("div", {class: "bars"}, element("h2", {text: `${system.name}${shown.some((n, d) => n < system.shape[d]) ? ", a part of it" : ""}`}),
    element("div", {class: "legend"}, ...mesh.map((axis) => element("span", {}, element("b", {style: `background: ${colour(axis)}`}), `${axis.axis} ${axis.size}`))),
    svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": about, style: "max-width: 100%"}, ...parts),
    element("ul", {}, ...system.shape.map((_, d) => element("li", {text: told(d)}))));
}

/* Slices of a trace in Chrome's form: a lane for each thread, at most 32 of them, and the longest slices of a long trace. */
function drawTimeline(trace) {
  const svg = (name, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const slices = trace.traceEvents.filter((e) => e.ph === "X" && e.tid < 32), kinds = [...new Set(slices.map((e) => e.cat))];
  const last = Math.max(...slices.map((e) => e.ts + e.dur)), lanes = 1 + Math.max(...slices.map((e) => e.tid));
  const drawn = [...slices].sort((a, b) => b.dur - a.dur).slice(0, 4000), colour = (e) => `var(${COLOURS[kinds.indexOf(e.cat) % COLOURS.length]})`;
  const width = 900, x = (t) => 60 + (width - 70) * t / last;
  const boxes = drawn.map((e) => svg("rect", {x: x(e.ts), y: 4 + 24 * e.tid, width: Math.max(0.5, x(e.ts + e.dur) - x(e.ts)), height: 18,
    style: `fill: ${colour(e)}; stroke: var(--paper); stroke-width: .5`}, svg("title", {}, `${e.name}: ${inSeconds(e.dur / 1e6)}`)));
  const labels = [...Array(lanes).keys()].map((i) => svg("text", {x: 0, y: 18 + 24 * i, style: "fill: var(--ink); font: 12px sans-serif"}, "stage " + i));
  return element("div", {class: "bars"}, element("h2", {text: `A step: ${inSeconds(last / 1e6)}`}),
    element("div", {class: "legend"}, ...kinds.map((kind) => element("span", {}, element("b", {style: `background: ${colour({cat: kind})}`}), kind))),
    svg("svg", {viewBox: `0 0 ${width} ${8 + 24 * lanes}`, width, role: "img", "aria-label": `Timeline of ${lanes} stages: ${kinds.join(", ")}`,
      style: "max-width: 100%; height: auto"}, ...labels, ...boxes));
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

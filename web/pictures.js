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

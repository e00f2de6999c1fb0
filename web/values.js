/* values: a question's fields as the words of a command line, as a call of Python, and as an address. */
"use strict";

/* The places of a verb's arguments: "OP ARRAY" gives op and array; "[NAME]" may be left out. */
function argumentsOf(verb) {
  return verb.arguments.split(/\s+/).filter(Boolean).map((word, i) => ({
    name: word.replace(/\W/g, "").toLowerCase(),
    required: i < verb.least,
    several: word.includes("..."),
  }));
}

/* What the answer has in every form, or what no page can do. */
const NOT_ASKED = new Set(["json", "csv", "output", "help"]);

function optionsOf(verb) {
  return [...verb.options, ...verb.common.filter((o) => !NOT_ASKED.has(o.name))];
}

/* fields: {argument or option name: text, true for a flag}. */
function wordsOf(verb, fields) {
  const words = [verb.name], places = [];
  for (const place of argumentsOf(verb)) {
    const text = fields["@" + place.name];
    if (text) places.push(...(place.several ? text.trim().split(/\s+/) : [text]));
  }
  if (!places.some((text) => text.startsWith("-"))) words.push(...places.splice(0));
  for (const option of optionsOf(verb)) {
    const value = fields[option.name];
    if (value === undefined || value === "" || value === false) continue;
    if (option.kind === "flag") words.push("--" + option.name);
    else if (option.kind === "list") words.push(...value.split(/\s+/).filter(Boolean).map((v) => `--${option.name}=${v}`));
    else words.push(`--${option.name}=${value}`);
  }
  return places.length ? [...words, "--", ...places] : words;
}

function shellOf(words) {
  const quoted = words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'"));
  return "scalemodel " + quoted.join(" ");
}

const PYTHON_WORDS = new Set(["as", "from", "in", "is", "with", "for", "if", "or", "and", "not", "class", "global", "lambda"]);

function pythonOf(verb, fields) {
  const parts = [];
  for (const place of argumentsOf(verb)) {
    const text = fields["@" + place.name];
    if (text) parts.push(...(place.several ? text.trim().split(/\s+/) : [text]).map((t) => JSON.stringify(t)));
  }
  for (const option of optionsOf(verb)) {
    const value = fields[option.name];
    if (value === undefined || value === "" || value === false) continue;
    const name = option.name.replace(/-/g, "_");
    const plain = /^(number|whole)$/.test(option.kind) && /^-?\d+(\.\d+)?$/.test(value);
    const text = option.kind === "flag" ? "True" : plain ? value
      : option.kind === "list" ? JSON.stringify(value.split(/\s+/)) : JSON.stringify(value);
    parts.push(`${PYTHON_WORDS.has(name) ? name + "_" : name}=${text}`);
  }
  return `sm.${verb.name}(${parts.join(", ")})`;
}

function addressOf(verb, fields) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields))
    if (value !== "" && value !== false && value !== undefined) query.set(name.replace("@", "_"), value === true ? "" : value);
  const text = query.toString();
  return "#" + verb.name + (text ? "?" + text : "");
}

/* What of a page is open beyond its question, {name: text}: keys of the address that begin with a point, which no option does. */
function withState(address, state) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) if (value) query.set("." + name, value);
  const text = query.toString();
  return text ? address + (address.includes("?") ? "&" : "?") + text : address;
}

function stateOf(address) {
  const state = {};
  for (const [key, value] of new URLSearchParams(address.split(/\?(.*)/s)[1] || "")) if (key.startsWith(".")) state[key.slice(1)] = value;
  return state;
}

/* Records as comma-separated values. */
function csvOf(rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (value) => { const text = String(value ?? ""); return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text; };
  return [columns, ...rows.map((row) => columns.map((name) => row[name]))].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

/* ---- a program's lines, with why each takes what it takes ---- */

const MOVES = {
  "all-gather": (array, axis) => `every chip of ${axis} has a part of ${array}, and what follows needs the whole.`,
  "reduce-scatter": (array, axis) => `every chip of ${axis} has a partial sum of ${array}; the sums are added, and each chip keeps its part.`,
  "all-reduce": (array, axis) => `every chip of ${axis} has a partial sum of ${array}; the sums are added, and every chip keeps the whole.`,
  "all-to-all": (array, axis) => `${array} lies over ${axis} in one dimension before and in another after; every chip sends each other its part.`,
};

/* A number with its unit: 137 GFLOP. */
function short(value, unit) {
  const [scale, prefix] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([size]) => value >= size) || [1, ""];
  return `${+(value / scale).toPrecision(4)} ${prefix}${unit}`.trim();
}

/* A node of a derivation in a sentence: "q, forward: 367 us = max(FLOPs / ..., bytes / ...); FLOPs 137G". */
function whyOf(node, place) {
  const value = (one) => one.unit === "s" ? `${(1e6 * one.value).toPrecision(4)} us` : (one.value < 1e-3 ? `${one.value.toExponential(3)} ${one.unit}` : short(one.value, one.unit));
  const inputs = (node.inputs || []).map((one) => `${one.label} ${value(one)}${one.source ? ` [${one.source}]` : ""}`);
  return `${node.label}, ${place}, once: ${value(node)}${node.formula ? " = " + node.formula : ""}${inputs.length ? ": " + inputs.join("; ") : ""}`;
}

/* The rows of the text of a program under a plan, {text, told}: told are the sentences of the line that the row is of, or of the
 * collective. data: of model with program; explain: the derivation of the same step, of train. */
function linesOf(data, explain) {
  const passes = {};
  const visit = (node) => {
    const found = /^(.+), (forward|backward)$/.exec(node.label);
    if (found && node.inputs) passes[node.label] = passes[node.label] || node.inputs;
    (node.inputs || []).forEach(visit);
  };
  if (explain) visit(explain);
  const nodes = (piece, phase, good) => (passes[`${piece}, ${phase}`] || []).filter(good).map((node) => whyOf(node, phase));
  const axes = Object.fromEntries(data.mesh.map((one) => [one.axis, `${one.subscript} (${one.axis}, ${one.size} chips)`]));
  const kinds = [...data.kinds];
  let kind = null, at = -1, moves = [];
  return data.program.split("\n").map((text) => {
    if (text.startsWith("text ")) { kind = kinds.shift(); at = -1; return {text, told: []}; }
    const statement = /^  ([a-z_]\w*)[[,]/i.exec(text);
    if (kind && statement) {
      const next = kind.lines[at + 1];
      if (!next || ![next.line, next.line.replace(".", "_"), next.line.replace(/\.\d+$/, "")].includes(statement[1])) return {text, told: []};
      at++;
      moves = [...(next.collectives || [])];
      const own = (node) => node.label === next.line;
      const work = (next.ops || []).map((op) => `${op.phase}: ${op.count} times in the step, ${+(1e3 * op.time_s).toPrecision(4)} ms in all: ${short(op.flops, "FLOP")}, ${short(op.bytes, "B")}`);
      return {text, told: [next.bound ? `${next.line} is bound by ${next.bound}.` : `${next.line} takes no time of its own.`, ...work, ...nodes(kind.piece, "forward", own), ...nodes(kind.piece, "backward", own)]};
    }
    const row = /^    # (\S+) (?:\d+ )?(\S+) over /.exec(text);
    const named = (one) => (one.gradient ? (one.array === "weights" ? "gradients" : "d" + one.array) : one.array);
    const found = row ? moves.findIndex((one) => one.op === row[1] && named(one) === row[2]) : -1;
    if (found < 0) return {text, told: []};
    const [move] = moves.splice(found, 1);
    const array = (move.gradient ? "the gradient of " : "") + (move.array === "weights" ? "the weights" : move.array), axis = axes[move.axis] || move.axis, phase = move.phase.split("-")[0];
    const own = (node) => node.label.startsWith(`${move.op} of ${move.array},`) && (node.inputs || []).some((one) => one.label === "bytes" && one.value === move.bytes_per_chip);
    return {text, told: [`${move.op}: ${(MOVES[move.op] || (() => ""))(array, axis)}`,
      `${move.phase}: ${move.count} times in the step, ${+(1e3 * move.time_s).toPrecision(4)} ms in all, of which ${+(1e3 * move.exposed_s).toPrecision(4)} ms are exposed.`,
      ...nodes(kind.piece, phase, own).slice(0, 1)]};
  });
}

/* [verb name, fields] of a problem of the book: {verb, places, options}. */
function problemOf({verb: name, places, options}, verbs) {
  const fields = {...options};
  argumentsOf(verbs.find((verb) => verb.name === name)).forEach((place, i) => {
    if (places[i]) fields["@" + place.name] = place.several ? places.slice(i).join(" ") : places[i];
  });
  return [name, fields];
}

/* {verb name, fields} of what addressOf wrote; flags and unknown names are told apart by the verb. */
function fieldsOf(address, verbs) {
  const [name, query] = address.replace(/^#/, "").split(/\?(.*)/s);
  const verb = verbs.find((v) => v.name === name);
  if (!verb) return null;
  const fields = {}, known = new Map(optionsOf(verb).map((o) => [o.name, o]));
  const places = new Set(argumentsOf(verb).map((p) => p.name));
  for (const [key, value] of new URLSearchParams(query || "")) {
    if (key.startsWith("_") && places.has(key.slice(1))) fields["@" + key.slice(1)] = value;
    else if (known.has(key)) fields[key] = known.get(key).kind === "flag" ? true : value;
  }
  return {verb, fields};
}

if (typeof module !== "undefined") module.exports = {argumentsOf, csvOf, linesOf, problemOf, optionsOf, stateOf, withState, wordsOf, shellOf, pythonOf, addressOf, fieldsOf};

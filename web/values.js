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

if (typeof module !== "undefined") module.exports = {argumentsOf, problemOf, optionsOf, wordsOf, shellOf, pythonOf, addressOf, fieldsOf};

/* The library as the page has it, run by node, against the program: every question, to the last digit.
 * usage: node against_program.js PAGE PROGRAM */
"use strict";
const {execFileSync, spawnSync} = require("child_process");
const path = require("path");
const [page, program] = process.argv.slice(2);
const {problemOf, wordsOf, addressOf, fieldsOf} = require("../values.js");
const {libraryIn, scriptOf} = require("../../scripts/page-library.js");

/* The book's problems, as the page has them; the files that they name lie where the program runs. */
const [LEARN, LEARN_FILES] = scriptOf(page, "learn.js", "[LEARN, LEARN_FILES]");
const cwd = path.resolve(__dirname, "../../docs/book");

/* What a clock gave is not compared. */
const timeless = (text) => {
  const data = JSON.parse(text);
  if (data.search) delete data.search.seconds;
  return JSON.stringify(data);
};

function compare(library, verbs, [name, fields]) {
  const verb = verbs.find((v) => v.name === name), words = wordsOf(verb, fields);
  const back = fieldsOf(addressOf(verb, fields), verbs);
  if (JSON.stringify(Object.entries(back.fields).sort()) !== JSON.stringify(Object.entries(fields).sort())) return "its address reads back otherwise";
  const here = library.ask(words), there = spawnSync(program, [...words, "--json"], {encoding: "utf8", maxBuffer: 1 << 28, cwd});
  if (here.status !== there.status) return `status ${here.status}, the program's ${there.status}: ${here.error}`;
  if (here.status > 1) return here.error.trim() === there.stderr.trim().replace(/^scalemodel: /, "") ? "" : `says ${here.error}`;
  return timeless(here.json) === timeless(there.stdout) ? "" : "other figures";
}

libraryIn(page).then((library) => {
  const described = library.describe();
  const version = execFileSync(program, ["--version"], {encoding: "utf8"}).trim();
  let failed = version === "scalemodel " + described.version ? 0 : 1, n = 0;
  for (const [name, text] of Object.entries(LEARN_FILES)) library.keep("/" + name, text);
  const problems = LEARN.flatMap((part) => part.sections.flatMap((section) => section.problems)).map((one) => problemOf(one, described.verbs));
  for (const question of [...require("./questions.js"), ...problems]) {
    const why = compare(library, described.verbs, question);
    console.log(`${why ? "not ok" : "ok"} ${++n} - ${question[0]} ${JSON.stringify(question[1])}${why ? ": " + why : ""}`);
    failed += why ? 1 : 0;
  }
  console.log("1.." + n);
  process.exit(failed ? 1 : 0);
});

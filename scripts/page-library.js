/* The library of a page for node, and as a program: what it says of its verbs, as the script verbs.js.
 * usage: node scripts/page-library.js PAGE */
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");
const {libraryOf} = require("../web/worker.js");

const scriptOf = (page, name, value) => vm.runInThisContext(fs.readFileSync(path.resolve(page, name), "utf8") + "; " + value);
const libraryIn = (page) => libraryOf(require(path.resolve(page, "scalemodel.js")), scriptOf(page, "wasm.js", "WASM"));

module.exports = {libraryIn, scriptOf};
if (require.main === module)
  libraryIn(process.argv[2]).then((library) =>
    console.log(`/* verbs: what the library says of its verbs. */\n"use strict"; const DESCRIBED = ${JSON.stringify(library.describe())};`));

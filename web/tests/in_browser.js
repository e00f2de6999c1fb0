/* The page in a browser: its figures are the program's, addresses and the back button, bad input, keyboard, narrow
 * and dark screens, accessibility, from a server and from disk.
 * usage: node in_browser.js PAGE PROGRAM CHROMIUM [FOLDER]      FOLDER: leave pictures there */
"use strict";
const assert = require("assert");
const fs = require("fs");
const path = require("path");
const {spawn, spawnSync} = require("child_process");
const {chromium} = require("playwright-core");
const {wordsOf, addressOf} = require("../values.js");
const [page, program, executablePath, folder] = process.argv.slice(2);

/* The page as the program serves it, with its policy. */
function serve() {
  const server = spawn(program, ["page", "--port", "0"]);
  process.on("exit", () => server.kill());
  return new Promise((done, failed) => {
    server.stdout.once("data", (text) => done([server, String(text).match(/http:\S+/)[0]]));
    server.stderr.once("data", (text) => failed(new Error(String(text))));
  });
}

const answered = (tab) => tab.waitForFunction(() => /^(The answer is no\. )?Answered|^No answer/.test(document.getElementById("status").textContent), null, {timeout: 120000});
const pageText = (tab) => tab.locator("#view pre").first().textContent();

async function run() {
  const [server, base] = await serve();
  const browser = await chromium.launch({executablePath, args: ["--no-sandbox"]});
  const context = await browser.newContext({viewport: {width: 1280, height: 900}});
  const tab = await context.newPage(), troubles = [];
  tab.on("pageerror", (error) => troubles.push(String(error)));
  tab.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
  let n = 0;
  const check = async (name, body) => {
    await body();
    console.log(`ok ${++n} - ${name}`);
  };
  const picture = async (name) => folder && tab.screenshot({path: path.join(folder, name + ".png"), fullPage: true});

  const begun = Date.now();
  await tab.goto(base);
  await answered(tab);
  console.log(`# first answer after ${Date.now() - begun} ms`);
  await check("the first page answers a question", async () => assert.match(await pageText(tab), /Best plan/));
  await picture("train");

  const verbs = await tab.evaluate(() => verbs);
  for (const [name, fields] of require("./questions.js")) {
    await check(`${name} ${JSON.stringify(fields)} as the program`, async () => {
      const verb = verbs.find((v) => v.name === name), words = wordsOf(verb, fields);
      await tab.goto("about:blank");
      await tab.goto(base + addressOf(verb, fields));
      await answered(tab);
      const there = spawnSync(program, words, {encoding: "utf8", maxBuffer: 1 << 28});
      const without = (text) => text.replace(/The search took [^\n]*/, "").trim();
      const face = Object.keys(fields).length === 0;
      if (there.status > 1) assert.strictEqual((await tab.locator("#error pre").textContent()).trim(), there.stderr.trim().replace(/^scalemodel: /, ""));
      else if (!face) assert.strictEqual(without(await pageText(tab)), without(there.stdout));
    });
  }
  await check("bad input is underlined, and its field marked", async () => {
    await tab.goto(base + "#train?_model=llama-3.1-8b&on=h100-sxm:8&batch=1M&plan=tensr%3D8");
    await answered(tab);
    assert.match(await tab.locator("#error pre").textContent(), /\^~~~~/);
    assert.ok(await tab.locator(".field.wrong [data-name=plan]").count());
    await picture("error");
  });
  await check("a form asks, and its address reloads to the same", async () => {
    await tab.goto(base + "#roofline");
    await answered(tab);
    await tab.fill("[data-name=dims]", "B=1..256,D=2048,F=2048");
    await tab.fill("[data-name=critical]", "");
    await tab.keyboard.press("Enter");
    await tab.waitForFunction(() => location.hash.includes("2048"));
    await answered(tab);
    const text = await pageText(tab);
    await tab.reload();
    await answered(tab);
    assert.strictEqual(await pageText(tab), text);
    await tab.click("role=tab[name=Picture]");
    await tab.waitForSelector("#view svg");
    await picture("roofline");
    await tab.goBack();
    await answered(tab);
    assert.ok(!(await tab.evaluate(() => location.hash)).includes("2048"));
  });
  await check("tabs by keyboard", async () => {
    await tab.goto(base + "#serve?_model=llama-3.1-8b&on=h100-sxm:2");
    await answered(tab);
    await tab.focus("role=tab[name=Page]");
    await tab.keyboard.press("ArrowRight");
    assert.strictEqual(await tab.locator("[role=tab][aria-selected=true]").textContent(), "Picture");
    await tab.waitForSelector("#view svg");
    await picture("serve");
    await tab.keyboard.press("ArrowRight");
    assert.ok(await tab.locator("#view table tbody tr").count() > 3);
  });
  await check("a config of one's own", async () => {
    await tab.goto(base + "#model");
    await answered(tab);
    const config = {model_type: "llama", hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, intermediate_size: 128, vocab_size: 100, tie_word_embeddings: false};
    await tab.setInputFiles("input[type=file]", {name: "config.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(config))});
    await tab.waitForFunction(() => document.getElementById("calls").textContent.includes("/config.json"));
    await answered(tab);
    await tab.click("role=tab[name=JSON]");
    assert.match(await tab.locator("#view pre").textContent(), /"params": 95040/);
  });
  await check("a search that is stopped keeps the best plan so far", async () => {
    await tab.goto(base + "#train?_model=deepseek-v3&on=h800:2048x8&batch=64M&chips=1024..16384");
    await tab.waitForFunction(() => document.getElementById("best").textContent || /^Answered/.test(document.getElementById("status").textContent), null, {timeout: 60000});
    if (await tab.locator("#stop").isVisible()) {
      await tab.click("#stop");
      await tab.waitForFunction(() => /^(Answered|Stopped)/.test(document.getElementById("status").textContent));
      console.log("# " + await tab.locator("#status").textContent());
      assert.match(await pageText(tab), /The search was stopped/);
      assert.match(await pageText(tab), /\n *\d+ +[\d.]+ m?s /);
    }
    await tab.goto(base + "#chip?_chip=tpu-v5p");
    await answered(tab);
    assert.match(await pageText(tab), /TPU v5p/);
  });
  await check("what if, the layer and the topology of a plan", async () => {
    await tab.goto(base + "#train?_model=llama-3.1-8b&on=tpu-v5p:4x4x4&batch=1M");
    await answered(tab);
    await tab.click("role=tab[name='What if']");
    await tab.focus("input[aria-label='FLOP/s']");
    for (let i = 0; i < 4; i++) await tab.keyboard.press("ArrowRight");
    await tab.waitForFunction(() => /under the best plan there/.test(document.querySelector("#view [role=status]").textContent));
    const told = await tab.locator("#view [role=status]").textContent();
    const there = JSON.parse(spawnSync(program, ["train", "llama-3.1-8b", "--on=tpu-v5p:4x4x4", "--batch=1M", "--what-if=flops=2x", "--json"], {encoding: "utf8"}).stdout);
    assert.ok(told.includes(there.what_if.best_plan), told);
    await picture("what-if");
    await tab.click("role=tab[name=Layer]");
    await tab.waitForSelector("#view pre");
    assert.match(await pageText(tab), /attention/);
    await picture("layer");
    await tab.click("role=tab[name=Topology]");
    await tab.waitForSelector("#view svg circle");
    await picture("topology");
    await tab.goto(base + "#train?_model=llama-3.1-70b&on=h100-sxm:4x8&batch=1M");
    await answered(tab);
    await tab.click("role=tab[name=Topology]");
    await tab.waitForSelector("#view svg rect");
    await picture("switches");
  });
  await check("the book's problems are asked by their links", async () => {
    await tab.goto(base + "#learn?03-sharding");
    await tab.waitForSelector("#learn table");
    await picture("learn");
    const links = await tab.evaluate(() => LEARN.flatMap((part) => part.sections.flatMap((section) => section.problems)).length);
    assert.ok(links > 80, String(links));
    await tab.click("#learn li a >> nth=0");
    await answered(tab);
    assert.match(await pageText(tab), /all-gather of A\[E_Y,F\]/);
    await tab.goto(base + "#learn?01-rooflines");
    await tab.click("#learn li a >> nth=0");
    await answered(tab);
    assert.match(await pageText(tab), /Critical B = 255\.213/);
  });
  await check("a problem of the book is answered in its place, with its numbers changed", async () => {
    await tab.goto(base + "#learn?01-rooflines");
    await tab.waitForSelector("#learn .picture svg");
    await tab.focus("#learn .sliders input");
    const before = await tab.locator("#learn .picture").innerHTML();
    await tab.keyboard.press("ArrowRight");
    await tab.waitForFunction((was) => document.querySelector("#learn .picture").innerHTML !== was, before);
    const form = tab.locator("#learn form").first();
    await form.locator("input").nth(2).fill("B=64,D=8192,F=8192");
    await form.locator("button").click();
    await tab.waitForSelector("#learn li pre");
    const there = spawnSync(program, ["roofline", "bf16[B,D] bf16[D,F] -> bf16[B,F]", "--on", "v5e-book", "--system", "chips.json", "--dims", "B=64,D=8192,F=8192", "--critical", "B"],
      {encoding: "utf8", cwd: path.resolve(__dirname, "../../docs/book")});
    assert.strictEqual((await tab.locator("#learn li pre").first().textContent()).trim(), there.stdout.trim());
    assert.ok(await tab.locator("#learn h3 ~ .scroll tbody tr").count() > 3);
    await picture("learn-answered");
    await tab.goto(base + "#learn?08-applied-inference");
    await tab.waitForSelector("#learn .picture svg");
    await picture("learn-frontier");
  });
  await check("the timeline of a plan", async () => {
    await tab.goto(base + "#train?_model=llama-3.1-70b&on=h100-sxm:8x8&batch=1M&plan=pipeline%3D8,tensor%3D8");
    await answered(tab);
    await tab.click("role=tab[name=Timeline]");
    await tab.waitForSelector("#view svg rect");
    assert.ok(await tab.locator("#view svg text").count() === 8);
    await picture("timeline");
  });
  await check("an answer that comes late is not shown for a newer question", async () => {
    const slow = await context.newPage();
    await slow.addInitScript(() => {
      const post = Worker.prototype.postMessage;
      Worker.prototype.postMessage = function (...all) { setTimeout(() => post.apply(this, all), 1500); };
    });
    await slow.goto(base + "#chip?_chip=tpu-v5p");
    await slow.waitForFunction(() => document.getElementById("status").textContent === "Computing …");
    await slow.waitForSelector("#progress:not([hidden])");
    await slow.evaluate(() => { location.hash = "#chip?_chip=tpu-v5e"; });
    await answered(slow);
    assert.match(await pageText(slow), /TPU v5e/);
    await slow.waitForTimeout(2000);
    assert.match(await pageText(slow), /TPU v5e/);
    await slow.close();
  });
  await check("on paper: the answer, without forms", async () => {
    await tab.goto(base + "#train");
    await answered(tab);
    await tab.emulateMedia({media: "print"});
    assert.ok(!await tab.locator("form").isVisible() && await tab.locator("#view pre").first().isVisible());
    await picture("print");
    await tab.emulateMedia({media: "screen"});
  });
  await check("nothing serious for who cannot see the page (axe)", async () => {
    for (const address of ["#train", "#serve", "#simulate", "#model", "#roofline", "#matmul", "#collective", "#chip", "#plan", "#train?_model=x&on=h100-sxm:8&batch=1M", "#learn"]) {
      await tab.goto("about:blank");
      await tab.goto(base + address);
      await (address === "#learn" ? tab.waitForSelector("#learn table") : answered(tab));
      await tab.evaluate(fs.readFileSync(require.resolve("axe-core"), "utf8"));
      const found = await tab.evaluate(() => axe.run());
      const serious = found.violations.filter((v) => /serious|critical/.test(v.impact));
      assert.deepStrictEqual(serious.map((v) => `${v.id}: ${v.nodes[0].html}`), []);
    }
  });
  await check("390 pixels wide, and dark", async () => {
    await tab.setViewportSize({width: 390, height: 844});
    await tab.emulateMedia({colorScheme: "dark"});
    await tab.goto(base + "#train");
    await answered(tab);
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= 390));
    await picture("narrow-dark");
    await tab.emulateMedia({colorScheme: "light"});
    await tab.setViewportSize({width: 1280, height: 900});
  });
  await check("no error on the console", async () => assert.deepStrictEqual(troubles, []));
  await check("reloaded when its server is gone", async () => {
    await tab.goto(base + "#chip?_chip=tpu-v5p");
    await tab.evaluate(() => navigator.serviceWorker.ready);
    server.kill();
    await new Promise((done) => setTimeout(done, 300));
    await tab.reload();
    await answered(tab);
    assert.match(await pageText(tab), /TPU v5p/);
  });
  await check("from disk, without a server", async () => {
    await tab.goto("file://" + path.resolve(page, "index.html"));
    await answered(tab);
    assert.match(await pageText(tab), /Best plan/);
    await tab.click("role=tab[name=Picture]");
    await picture("from-disk");
  });
  console.log("1.." + n);
  await browser.close();
}

run().catch((why) => { console.log("not ok - " + (why && why.stack || why)); process.exit(1); });

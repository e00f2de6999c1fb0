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
  /* In a window as high as the page, where nothing sticks to its edge. */
  const picture = async (name) => {
    if (!folder) return;
    const size = tab.viewportSize();
    await tab.setViewportSize({width: size.width, height: Math.max(size.height, await tab.evaluate(() => document.documentElement.scrollHeight))});
    await tab.screenshot({path: path.join(folder, name + ".png"), fullPage: true});
    await tab.setViewportSize(size);
  };

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
    await tab.waitForSelector("#view .program .line");
    assert.match(await tab.locator("#view .program").textContent(), /attention/);
    /* Of every statement and every collective something is told, and it is the derivation that --explain has. */
    const explained = spawnSync(program, ["train", "llama-3.1-8b", "--on=tpu-v5p:4x4x4", "--batch=1M", "--explain"], {encoding: "utf8", maxBuffer: 1 << 28}).stdout;
    const lines = tab.locator("#view .program .line");
    const starts = (await tab.locator("#view .program > *").allTextContents()).filter((text) => /^  [a-z]\w*\[/.test(text) || /^    # \S+ .* over /.test(text)).length;
    assert.strictEqual(await lines.count(), starts);
    await lines.filter({hasText: /^  q\[/}).first().hover();
    assert.match(await tab.locator(".why").innerText(), /q is bound by compute[^]*q, forward, once: [\d.]+ us = max\(FLOPs/);
    assert.match(explained, /q [\d.]+ us = max\(FLOPs/);
    await lines.first().focus();
    await tab.keyboard.press("ArrowDown");
    assert.match(await tab.locator(".why").innerText(), /(all-gather|reduce-scatter|all-reduce|bound by)/);
    await picture("layer");
    await tab.click("role=tab[name=Topology]");
    await tab.waitForSelector("#view svg circle");
    await tab.selectOption("#view select", "0");
    await tab.waitForSelector("#view svg circle.member");
    await picture("topology");
    await tab.reload();
    await answered(tab);
    await tab.waitForSelector("#view svg circle.member");
    await tab.goto(base + "#train?_model=llama-3.1-70b&on=h100-sxm:4x8&batch=1M&.view=Topology");
    await answered(tab);
    await tab.waitForSelector("#view svg rect");
    await picture("switches");
  });
  await check("a collective on a picture of the system, with the chips of a group", async () => {
    const asked = ["all-gather", "bf16[E_Y,F]", "--on=tpu-v5e:4x4", "--mesh=X=2,Y=8", "--over=Y", "--dims=E=2048,F=8192"];
    const mesh = JSON.parse(spawnSync(program, ["collective", ...asked, "--json"], {encoding: "utf8"}).stdout).mesh;
    await tab.goto(base + "#collective?_op=all-gather&_array=bf16%5BE_Y%2CF%5D&on=tpu-v5e:4x4&mesh=X%3D2%2CY%3D8&over=Y&dims=E%3D2048%2CF%3D8192&.view=Topology");
    await answered(tab);
    assert.strictEqual(await tab.locator("#view svg circle").count(), 16);
    assert.strictEqual(await tab.locator("#view svg circle.member").count(), mesh[1].parts.reduce((n, part) => n * part.size, 1));
    await picture("collective");
  });
  await check("every figure is saved as SVG, CSV and JSON", async () => {
    const read = async (name) => {
      const [file] = await Promise.all([tab.waitForEvent("download"), tab.locator(`#view button:has-text("Save ${name}")`).first().click()]);
      return fs.readFileSync(await file.path(), "utf8");
    };
    const plan = "&on=h100-sxm:8&batch=1M&plan=fsdp%3D8,microbatch%3D1";
    for (const address of ["#train?_model=llama-3.1-8b" + plan + "&.view=Picture", "#train?_model=llama-3.1-8b" + plan + "&.view=Topology", "#train?_model=llama-3.1-8b" + plan + "&.view=Timeline",
      "#serve?_model=llama-3.1-8b&on=h100-sxm:2&.view=Picture", "#roofline?_einsum=A%5BB%2CD%5D+W%5BD%2CF%5D&on=tpu-v5e&dims=B%3D64%2CD%3D4096%2CF%3D4096&.view=Picture"]) {
      await tab.goto("about:blank");
      await tab.goto(base + address);
      await answered(tab);
      await tab.waitForSelector("#view svg");
      const drawn = await read("SVG"), csv = await read("CSV"), rows = JSON.parse(await read("JSON"));
      assert.match(drawn, /^<svg[^]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
      assert.ok(!drawn.includes("var(--"), "a colour of the page");
      assert.ok(csv.trim().split("\n").length >= 2, csv);
      assert.ok(Array.isArray(rows) ? rows.length : Object.keys(rows).length);
    }
  });
  await check("serve's best replica, simulated at a rate that moves", async () => {
    await tab.goto(base + "#serve?_model=llama-3.1-8b&on=h100-sxm:2&.view=Simulate");
    await answered(tab);
    await tab.waitForSelector("#view pre");
    await tab.focus("#view input[type=range]");
    const before = await pageText(tab);
    for (let i = 0; i < 6; i++) await tab.keyboard.press("ArrowRight");
    await tab.waitForFunction((was) => document.querySelector("#view pre").textContent !== was && /poisson/.test(document.querySelector("#view pre").textContent), before);
    await tab.waitForFunction(() => location.hash.includes(".slide=13"));
    const [there] = (await tab.locator("#view a").getAttribute("href")).match(/arrivals=[^&]*/);
    await tab.waitForFunction((rate) => document.querySelector("#view pre").textContent.includes(rate), decodeURIComponent(there).slice(9));
    await picture("simulate");
  });
  await check("sliders and problems come back from the address", async () => {
    await tab.goto("about:blank");
    await tab.goto(base + "#train?_model=llama-3.1-8b&on=tpu-v5e:4x4&batch=512k&.view=What+if&.hbm=1");
    await answered(tab);
    await tab.waitForFunction(() => /under the best plan there/.test(document.querySelector("#view [role=status]").textContent));
    assert.strictEqual(await tab.locator("input[aria-label='Memory bandwidth']").inputValue(), "1");
    await tab.goto("about:blank");
    await tab.goto(base + "#learn?01-rooflines&.problem=0&.in.dims=B%3D64%2CD%3D8192%2CF%3D8192");
    await tab.waitForSelector("#learn li pre");
    assert.match(await tab.locator("#learn li pre").first().textContent(), /Critical B/);
    assert.match(await tab.locator("#learn li code").nth(2).textContent(), /^sm\.roofline\(/);
    assert.match(await tab.locator("#learn li code").nth(1).textContent(), /B=64,D=8192,F=8192/);
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
  await check("the largest search of the demo: 70B on 8,960 chips", async () => {
    await tab.goto("about:blank");
    const asked = Date.now();
    await tab.goto(base + "#train?_model=llama-3.1-70b&on=tpu-v5p:16x20x28&batch=4M&seq=4096");
    await answered(tab);
    console.log(`# ${Date.now() - asked} ms with the start of the page; ${await tab.locator("#status").textContent()}`);
    assert.match(await pageText(tab), /Best plan/);
  });
  await check("the timeline of a plan", async () => {
    await tab.goto(base + "#train?_model=llama-3.1-70b&on=h100-sxm:8x8&batch=1M&plan=pipeline%3D8,tensor%3D8");
    await answered(tab);
    await tab.click("role=tab[name=Timeline]");
    await tab.waitForSelector("#view svg rect");
    assert.strictEqual(await tab.locator("#view svg text", {hasText: /^stage \d$/}).count(), 8);
    /* A lane that is named has slices, and they begin after its name. */
    const lanes = await tab.evaluate(() => {
      const rects = [...document.querySelectorAll("#view svg rect")].map((rect) => rect.getBBox());
      return [...document.querySelectorAll("#view svg text")].filter((text) => /^stage/.test(text.textContent)).map((text) => {
        const own = text.getBBox(), row = rects.filter((rect) => rect.height === 18 && Math.abs(rect.y + 9 - own.y - own.height / 2) < 8);
        return [text.textContent, row.length > 0 && row.every((rect) => rect.x >= own.x + own.width)];
      });
    });
    assert.ok(lanes.length > 8);
    assert.deepStrictEqual(lanes.filter(([, good]) => !good), []);
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
    for (const address of ["#train", "#serve", "#simulate", "#model", "#roofline", "#matmul", "#collective", "#chip", "#plan", "#train?.view=Picture", "#train?_model=llama-3.1-8b&on=tpu-v5e:4x4&batch=512k&.view=Layer", "#train?_model=llama-3.1-8b&on=tpu-v5e:4x4&batch=512k&.view=Topology",
      "#serve?_model=llama-3.1-8b&on=h100-sxm:2&.view=Simulate", "#train?_model=x&on=h100-sxm:8&batch=1M", "#learn"]) {
      await tab.goto("about:blank");
      await tab.goto(base + address);
      await (address === "#learn" ? tab.waitForSelector("#learn table") : answered(tab));
      await tab.evaluate(fs.readFileSync(require.resolve("axe-core"), "utf8"));
      if (address.includes(".view")) await tab.waitForSelector("#view svg, #view .line, #view pre");
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
    for (const view of ["Picture", "Layer", "Topology", "Timeline"]) {
      await tab.goto("about:blank");
      await tab.goto(base + "#train?_model=llama-3.1-8b&on=tpu-v5e:4x4&batch=512k&.view=" + view);
      await answered(tab);
      await tab.waitForSelector("#view svg, #view .line");
      assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= 390), view);
    }
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

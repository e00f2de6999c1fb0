/* page: a form for each verb, made of the library's own description of it, and the answer in every form. */
"use strict";

/* Of each verb: what is asked first, and examples. All other options are below "More". */
const FACE = {
  train: {first: ["on", "batch", "seq", "plan", "tokens", "objective", "top"], examples: [
    ["LLaMA 3.1 8B on 16 TPU v5e", {"@model": "llama-3.1-8b", on: "tpu-v5e:4x4", batch: "512k", seq: "4096"}],
    ["70B on a TPU v5p pod", {"@model": "llama-3.1-70b", on: "tpu-v5p:16x20x28", batch: "4M", seq: "4096", tokens: "15T"}],
    ["Mixtral on 64 H100", {"@model": "mixtral-8x7b", on: "h100-sxm:8x8", batch: "4M", seq: "4096"}]]},
  serve: {first: ["on", "prompt", "output", "tpot", "ttft", "batch", "plan", "qps"], examples: [
    ["LLaMA 3.1 70B on 8 H100", {"@model": "llama-3.1-70b", on: "h100-sxm:8", prompt: "2048", output: "256", tpot: "50ms"}],
    ["DeepSeek-V3 on 8 H200", {"@model": "deepseek-v3", on: "h200:8", prompt: "4096", output: "1024"}]]},
  simulate: {first: ["on", "plan", "arrivals", "requests", "prompt", "output", "ttft", "tpot", "policy"], examples: [
    ["70B at four requests a second", {"@model": "llama-3.1-70b", on: "h100-sxm:1x8", plan: "tensor=8", arrivals: "poisson:4/s",
      requests: "1000", ttft: "1s", tpot: "50ms"}]]},
  model: {first: ["seq", "program", "phase", "on", "batch", "plan"], examples: [
    ["Its parameters", {"@model": "deepseek-v3"}], ["The layer as a program", {"@model": "llama-3.1-8b", program: true}],
    ["Sharded, line by line", {"@model": "llama-3.1-8b", program: true, on: "tpu-v5p:4x4x4", batch: "2M", plan: "fsdp=16,tensor=4,microbatch=4"}]]},
  roofline: {first: ["on", "dims", "critical", "compute"], examples: [
    ["When is a matmul compute bound?", {"@einsum": "bf16[B,D] bf16[D,F] -> bf16[B,F]", on: "tpu-v5e", dims: "D=4096,F=4096", critical: "B"}],
    ["Over batch sizes", {"@einsum": "bf16[B,D] bf16[D,F] -> bf16[B,F]", on: "tpu-v5e", dims: "B=1..4096,D=4096,F=4096"}]]},
  matmul: {first: ["on", "mesh", "dims", "top"], examples: [
    ["Contracted dimension sharded", {"@einsum": "A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]", on: "tpu-v5e:4x4", mesh: "X=4,Y=4", dims: "I=8192,J=8192,K=8192"}],
    ["Two layers of an MLP", {"@einsum": "h[B,F] = x[B_X,D] w[D,F_Y]; y[B_X,D] = h[B,F] v[F_Y,D]", on: "h100-sxm:8", mesh: "X=2,Y=4",
      dims: "B=4096,D=4096,F=16384"}]]},
  collective: {first: ["on", "mesh", "over", "dims"], examples: [
    ["All-gather over one axis", {"@op": "all-gather", "@array": "bf16[E_Y,F]", on: "tpu-v5e:8x4", mesh: "X=8,Y=4", over: "Y", dims: "E=2048,F=8192"}]]},
  chip: {first: [], examples: [["TPU v5p", {"@chip": "tpu-v5p"}], ["All chips", {}]]},
  mfu: {first: ["from", "seq", "batch", "dtype"], examples: [
    ["What MaxText called 46 %", {"@model": "llama-3.1-70b", "@system": "tpu-v5p:8x8x8", from: "maxtext@2025-06 46 %", batch: "4M"}],
    ["What each counts", {"@model": "llama-3.1-8b", "@system": "h100-sxm:8"}]]},
  plan: {first: [], examples: [["A plan", {"@plan": "fsdp=8,tensor=4,microbatch=2"}]]},
  profile: {first: ["on", "mesh", "top"], examples: []},
  reshard: {first: ["on", "from", "to"], examples: [
    ["From rows to columns", {"@log": "bf16[16,4096]", from: "{devices=[8,1]<=[8]}", to: "{devices=[1,8]<=[8]}", on: "h100-sxm"}]]},
  mfu: {first: ["from", "seq", "batch"], examples: [
    ["Whose 46 %?", {"@model": "llama-3.1-70b", "@system": "tpu-v5p:8x8x8", from: "maxtext@2025-06 46 %"}]]},
  support: {first: ["software", "concurrency", "prompt", "batch"], examples: [
    ["What was measured near it", {"@model": "qwen3-32b", "@system": "h100-sxm:8", software: "vllm-0.12"}]]},
};
/* Verbs that need the program's own files of measurements, or many questions at once; others come after those with a face. */
const NOT_HERE = new Set(["validate", "calibrate", "sweep"]);
const BEFORE_ANY = "train";

const $ = (id) => document.getElementById(id);
let library, verbs, names = {chips: [], models: []}, asked = 0, stopping = 0;

/* What of the page is open beyond its question (the view, what a slider is at): in the address too. */
let here = "", state = {};
function keepState(changes) {
  state = {...state, ...changes};
  history.replaceState(null, "", withState(here, state));
}

/* ---- the form ---- */

function field(verb, name, label, help, input) {
  input.id = "field-" + name.replace("@", "_");
  input.dataset.name = name;
  const flag = input.type === "checkbox";
  const about = element("div", {class: "help", id: input.id + "-help", text: help});
  input.setAttribute("aria-describedby", about.id);
  const title = element("label", {for: input.id, text: label});
  return element("div", {class: "field" + (flag ? " flag" : "")}, ...(flag ? [input, title, about] : [title, input, about]));
}

function inputFor(option, value) {
  if (option.kind === "flag") {
    const box = element("input", {type: "checkbox"});
    box.checked = value === true;
    return box;
  }
  if (option.kind === "choice") {
    const select = element("select", {}, element("option", {value: "", text: option.default ? `${option.default} (default)` : "(default)"}),
      ...option.words.filter((word) => word !== option.default).map((word) => element("option", {value: word, text: word})));
    select.value = value === option.default ? "" : value || "";
    return select;
  }
  const list = option.name === "on" ? "chips" : option.name === "draft" ? "models" : undefined;
  return element("input", {type: "text", value: value || "", placeholder: option.default || option.value || "", spellcheck: "false",
    list: list && "list-" + list, required: option.required});
}

function helpOf(option) {
  const words = option.words && option.kind !== "choice" ? `: ${option.words.join(", ")}` : "";
  return option.help + words + (option.default_says ? ` (default: ${option.default_says})` : "");
}

function optionField(verb, option, fields) {
  return field(verb, option.name, option.name.replace(/-/g, " ") + (option.required ? " (needed)" : ""), helpOf(option),
    inputFor(option, fields[option.name]));
}

/* An argument that names a file, or may: a person's own is dropped or chosen. */
function takesFile(verb, place) { return /^(model|file)$/.test(place.name); }

function placeField(verb, place, fields) {
  const input = element("input", {type: "text", value: fields["@" + place.name] || "", required: place.required, spellcheck: "false",
    list: place.name === "model" ? "list-models" : verb.name === "chip" ? "list-chips" : undefined});
  const made = field(verb, "@" + place.name, place.name + (place.required ? " (needed)" : ""),
    place.name === "model" ? "a name of the catalogue, or a config.json of yours" : `the command's ${verb.arguments}`, input);
  if (takesFile(verb, place)) {
    const chooser = element("input", {type: "file", "aria-label": `A file of yours as ${place.name}`});
    chooser.addEventListener("change", () => takeFiles(chooser.files, input));
    made.append(chooser);
  }
  return made;
}

async function takeFiles(list, input) {
  for (const file of list) {
    let bytes = new Uint8Array(await file.arrayBuffer());
    const name = "/" + (/\.json$|\./.test(file.name) ? file.name : file.name + ".json").replace(/[^\w.-]/g, "_");
    library.keep(name, bytes);
    if (input) input.value = name;
  }
  if (list.length) askForm();
}

function shownOptions(verb) {
  return optionsOf(verb).filter((option) => option.kind !== "output" && option.kind !== "input");
}

function drawForm(verb, fields) {
  const face = FACE[verb.name] || {first: [], examples: []}, form = $("question");
  const options = shownOptions(verb), first = face.first.map((name) => options.find((o) => o.name === name)).filter(Boolean);
  const more = options.filter((option) => !first.includes(option));
  const open = more.some((option) => fields[option.name] !== undefined);
  form.replaceChildren(
    element("p", {class: "about", text: verb.summary[0].toUpperCase() + verb.summary.slice(1) + "."}),
    element("div", {class: "examples"}, ...face.examples.map(([text, example]) =>
      element("a", {href: addressOf(verb, example), text}))),
    ...argumentsOf(verb).map((place) => placeField(verb, place, fields)),
    ...first.map((option) => optionField(verb, option, fields)),
    element("details", {open}, element("summary", {text: "More"}), ...more.map((option) => optionField(verb, option, fields))),
    element("div", {class: "actions"}, element("button", {class: "primary", type: "submit", text: "Answer"})));
}

function formFields() {
  const fields = {};
  for (const input of $("question").querySelectorAll("[data-name]")) {
    const value = input.type === "checkbox" ? input.checked : input.value.trim();
    if (value !== "" && value !== false) fields[input.dataset.name] = value;
  }
  return fields;
}

/* ---- the answer ---- */

function copyButton(text) {
  return element("button", {type: "button", text: "Copy", onclick: () => navigator.clipboard && navigator.clipboard.writeText(text)});
}

function saveButton(label, name, text, type) {
  return element("button", {type: "button", class: "save", text: label, onclick: () => {
    const link = element("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }});
}

/* What of a figure can be taken away: the picture, and the records that it is drawn of. A picture of ours keeps the colours that it
 * has here. */
function saveFigure(name, picture, rows, csv = csvOf(rows), json = JSON.stringify(rows, null, 2)) {
  const colours = getComputedStyle(document.documentElement), made = picture.cloneNode(true);
  made.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const text = made.outerHTML.replace(/var\((--\w+)\)/g, (_, v) => colours.getPropertyValue(v).trim());
  return element("p", {class: "saves"}, saveButton("Save SVG", name + ".svg", text, "image/svg+xml"), saveButton("Save CSV", name + ".csv", csv, "text/csv"),
    saveButton("Save JSON", name + ".json", json, "application/json"));
}

/* A picture that the library draws when it is asked for one, which may take as long as the answer. */
function chartOf(name, answer) {
  const chart = drawChart(answer.chart);
  chart.append(saveFigure(name, chart.querySelector("svg"), [], answer.csv, answer.json));
  return chart;
}

function askedPicture(verb, words) {
  const box = element("div", {role: "status", text: "Drawing …"});
  library.ask([...words, "--plot=/dev/null"]).then(({answer}) => {
    if (!answer || !answer.chart) { box.textContent = answer && answer.error ? answer.error : "There is nothing to draw."; return; }
    box.replaceChildren(chartOf(verb.name, answer));
  });
  return box;
}

/* A step of the best plan, stage by stage, or what the engines of a simulation did; the file is for Perfetto. */
function askedTimeline(verb, fields, data) {
  const box = element("div", {role: "status", text: "Computing …"});
  const asked = data.plans ? {...fields, on: data.system.name, plan: data.plans[0].plan} : fields;
  library.ask([...wordsOf(verb, asked), "--timeline=/dev/null"]).then(({answer}) => {
    if (!answer || !answer.timeline) { box.textContent = answer && answer.error ? answer.error : "There is no timeline."; return; }
    box.replaceChildren(drawTimeline(JSON.parse(answer.timeline)), saveButton("Save for Perfetto", "timeline.json", answer.timeline, "application/json"));
  });
  return box;
}

/* The layer as a program under the best plan, with shardings and collectives beside each line. */
function layerOf(fields, data) {
  return {"@model": fields["@model"], program: true, on: data.system.name, batch: String(data.batch.tokens), seq: String(data.batch.seq), plan: data.plans[0].plan};
}

/* The program line by line; of the line under the pointer, or that the arrow keys are at, why it takes what it takes: the nodes of
 * the library's derivation of the step that are of this line. */
function askedLayer(fields, stepFields) {
  const model = verbs.find((one) => one.name === "model"), train = verbs.find((one) => one.name === "train");
  const box = element("div", {role: "status", text: "Computing …"});
  Promise.all([library.ask(wordsOf(model, fields)), library.ask(wordsOf(train, {...stepFields, explain: true}))]).then(([{answer}, {answer: step}]) => {
    if (!answer || !answer.json) { box.textContent = answer ? answer.error : "Stopped."; return; }
    const lines = linesOf(JSON.parse(answer.json), step && step.json ? JSON.parse(step.json).explain : null);
    const why = element("div", {class: "why", role: "status", text: "Point at a line, or go to it by the arrow keys: here stands why it takes what it takes."});
    const choices = [];
    const rows = lines.map(({text, told}) => {
      if (!told.length) return element("div", {text: text || " "});
      const show = () => {
        choices.forEach((one) => { one.tabIndex = one === row ? 0 : -1; });
        why.replaceChildren(...told.map((sentence) => element("p", {text: sentence})));
      };
      const row = element("button", {type: "button", class: "line", text, tabindex: choices.length ? "-1" : "0", onmouseenter: show, onfocus: show,
        onkeydown: (event) => {
          const to = choices[choices.indexOf(row) + ({ArrowDown: 1, ArrowUp: -1}[event.key] || 0)];
          if (to && to !== row) { event.preventDefault(); to.focus(); }
        }});
      choices.push(row);
      return row;
    });
    box.removeAttribute("role");
    box.replaceChildren(element("p", {}, element("a", {href: addressOf(model, fields), text: "Ask this for itself"})),
      element("div", {class: "program", role: "group", "aria-label": "The program, line by line"}, ...rows), why);
  });
  return box;
}

/* The best plan on another machine while the sliders move; the best plan there once they rest. */
const RESOURCES = [["link", "Links"], ["hbm", "Memory bandwidth"], ["flops", "FLOP/s"], ["memory", "Memory"]];

function whatIf(verb, fields, data) {
  const told = element("p", {role: "status"}), best = data.plans[0], inputs = {};
  let busy = false, next = null;
  const changes = () => RESOURCES.map(([key]) => [key, 2 ** inputs[key].value]).filter(([, factor]) => factor !== 1)
    .map(([key, factor]) => `${key}=${+factor.toPrecision(4)}x`).join(",");
  const show = (result, rested) => {
    const before = best.step_time_s.expected, step = rested ? result.best_step_time_s : result.same_plan_step_time_s;
    told.textContent = `${inSeconds(before)} a step becomes ${inSeconds(step)} (${(before / step).toPrecision(3)} times as fast)` +
      (rested ? ` under the best plan there: ${result.best_plan}` : " under the same plan.");
  };
  const ask = async (rested) => {
    if (busy) { next = {rested}; return; }
    const what = changes();
    if (!what) { told.textContent = `${inSeconds(best.step_time_s.expected)} a step, as it is.`; return; }
    busy = true;
    const asked = {...fields, on: data.system.name, "what-if": what};
    if (!rested) asked.plan = best.plan;
    const {answer} = await library.ask(wordsOf(verb, asked));
    busy = false;
    if (answer && answer.json) show(JSON.parse(answer.json).what_if, rested);
    else told.textContent = answer ? answer.error : "Stopped.";
    if (next) { const {rested: late} = next; next = null; ask(late); }
  };
  const box = element("div", {class: "sliders"}, ...RESOURCES.map(([key, name]) => {
    const shown = element("output");
    const tell = () => { shown.textContent = `${+(2 ** inputs[key].value).toPrecision(3)} ×`; };
    inputs[key] = element("input", {type: "range", min: "-2", max: "2", step: "0.25", value: state[key] || "0", "aria-label": name,
      oninput: () => { tell(); ask(false); }, onchange: () => { keepState({[key]: inputs[key].value === "0" ? "" : inputs[key].value}); ask(true); }});
    tell();
    return element("label", {}, element("span", {text: name}), inputs[key], shown);
  }), told);
  ask(RESOURCES.some(([key]) => state[key]));
  return box;
}

function viewsOf(verb, fields, words, answer) {
  const data = JSON.parse(answer.json), views = [];
  const page = element("div", {}, element("pre", {text: answer.text}));
  views.push(["Page", () => page]);
  const drawn = verb.options.some((option) => option.name === "plot" && option.kind === "output");
  const picture = drawn ? null : drawPicture(data);
  if (drawn) views.push(["Picture", () => askedPicture(verb, words)]);
  else if (picture) views.push(["Picture", () => picture]);
  const table = tableOf(data);
  if (table) views.push(["Table", () => element("div", {}, drawTable(table), saveButton("Save CSV", verb.name + ".csv", answer.csv, "text/csv"))]);
  if (verb.name === "train" && data.plans && data.plans.length) {
    const step = {...fields, on: data.system.name, plan: data.plans[0].plan, "what-if": undefined};
    views.push(["What if", () => whatIf(verb, fields, data)]);
    views.push(["Layer", () => askedLayer(layerOf(fields, data), step)]);
  }
  if (verb.name === "model" && data.kinds && data.plan && data.phase === "train")
    views.push(["Layer", () => askedLayer(fields, {...fields, plan: data.plan, program: undefined})]);
  const mesh = data.plans && data.plans.length ? data.plans[0].mesh : data.mesh;
  if (mesh && data.system && data.system.levels)
    views.push(["Topology", () => drawCollectives(data.system, mesh, collectivesOf(data), state.collective || (data.plans ? "" : "0"),
      (at) => keepState({collective: at}))]);
  if (verb.name === "simulate" || (verb.name === "train" && data.plans && data.plans.length)) views.push(["Timeline", () => askedTimeline(verb, fields, data)]);
  if (verb.name === "serve" && data.best) views.push(["Simulate", () => drawPlot(simulated(fields, data))]);
  views.push(["JSON", () => element("div", {}, element("pre", {text: answer.json}), saveButton("Save JSON", verb.name + ".json", answer.json, "application/json"))]);
  return views;
}

function drawTabs(views) {
  const show = (at, chosen) => {
    if (chosen) keepState({view: at ? views[at][0] : ""});
    [...$("tabs").children].forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === at));
      tab.tabIndex = i === at ? 0 : -1;
    });
    $("view").replaceChildren(views[at][1]());
    $("view").setAttribute("aria-labelledby", "tab-" + at);
  };
  $("tabs").replaceChildren(...views.map(([name], i) => element("button", {type: "button", role: "tab", id: "tab-" + i,
    "aria-controls": "view", text: name, onclick: () => show(i, true), onkeydown: (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      const next = (i + step + views.length) % views.length;
      show(next, true);
      $("tabs").children[next].focus();
    }})));
  show(Math.max(0, views.findIndex(([name]) => name === state.view)));
}

function drawAnswer(verb, fields, words, {answer, seconds}) {
  $("error").hidden = answer.status <= 1;
  $("shown").hidden = answer.status > 1;
  for (const wrong of document.querySelectorAll(".wrong")) wrong.classList.remove("wrong");
  if (answer.status > 1) {
    $("status").textContent = "No answer";
    $("error").firstElementChild.textContent = answer.error;
    const parts = answer.errorParts ? JSON.parse(answer.errorParts) : {};
    const source = (parts.source || "").replace(/^--/, "");
    const input = document.querySelector(`[data-name="${CSS.escape(source)}"], [data-name="@${CSS.escape(source)}"]`);
    if (input) input.closest(".field").classList.add("wrong");
    return;
  }
  const search = answer.json && stopping === asked ? JSON.parse(answer.json).search : null;
  if (search && !search.optimal) {
    const gap = search.gap > 0 ? `: a better plan gains at most ${(100 * search.gap).toPrecision(3)} %` : "";
    $("status").textContent = `Answered in ${seconds.toFixed(1)} s. Stopped, and this is the best plan so far${gap}.`;
  } else $("status").textContent = `${answer.status ? "The answer is no. " : ""}Answered in ${seconds < 0.1 ? Math.max(1, Math.round(seconds * 1000)) + " ms" : seconds.toFixed(1) + " s"}`;
  const calls = [["Command", shellOf(words)], ["Python", pythonOf(verb, fields)]];
  $("calls").replaceChildren(...calls.map(([name, text]) => element("div", {}, element("span", {text: name}), element("code", {text, tabindex: "0"}), copyButton(text))));
  drawTabs(viewsOf(verb, fields, words, answer));
}

async function answerTo(verb, fields) {
  const number = ++asked, words = wordsOf(verb, fields);
  $("status").textContent = "Computing …";
  const slow = setTimeout(() => { $("progress").hidden = false; }, 300);
  $("fraction").removeAttribute("value");
  $("best").textContent = "";
  const objective = fields.objective || "time";
  const told = await library.ask(words, (fraction, best) => {
    $("fraction").value = fraction;
    $("best").textContent = best > 0 && verb.name === "train" && objective === "time" ? `best so far ${inSeconds(best)} a step` : "";
  });
  clearTimeout(slow);
  if (number !== asked) return;
  $("progress").hidden = true;
  if (told.stopped) { $("status").textContent = "Stopped" + ($("best").textContent ? "; " + $("best").textContent : ""); return; }
  drawAnswer(verb, fields, words, told);
}

/* ---- addresses ---- */

function drawVerbs(current) {
  const order = [...new Set([...Object.keys(FACE), ...verbs.map((v) => v.name)])].filter((name) => verbs.some((v) => v.name === name) && !NOT_HERE.has(name));
  $("verbs").replaceChildren(...order.map((name) => element("a", {href: "#" + name, text: name,
    "aria-current": name === current ? "page" : undefined})),
    element("a", {href: "#learn", text: "learn", "aria-current": current === "learn" ? "page" : undefined}));
}

/* What the book draws with a slider or over batches, asked of the library at each place of the slider. */
const PLOTS = {
  "01-rooflines": {title: "The roofline of a product, over batches", verb: "roofline", slides: "D and F", from: 7, to: 14,
    fields: (n) => ({"@einsum": "bf16[B,D] bf16[D,F] -> bf16[B,F]", on: "tpu-v5e", dims: `B=1..8192,D=${n},F=${n}`})},
  "05-training": {title: "When is FSDP with tensor parallelism bound by compute?", verb: "train", slides: "tokens a batch", from: 17, to: 23,
    fields: (n) => ({"@model": "llama-3-70b", on: "tpu-v5p:8x8x4", batch: String(n), seq: "4096", plan: "pipeline=1", top: "3"})},
  "08-applied-inference": {title: "Latency against throughput of LLaMA 3 70B in int8 on a TPU v5e 4x4", verb: "serve", slides: "tokens of a prompt", from: 7, to: 15,
    fields: (n) => ({"@model": "llama-3-70b", on: "tpu-v5e:4x4", weights: "int8", kv: "int8", plan: "tensor=16", prompt: String(n), output: "256"})},
};

function drawPlot({title, verb: name, slides, from, to, at = Math.round((from + to) / 2), value = (n) => 2 ** n, page, fields}) {
  const verb = verbs.find((one) => one.name === name), box = element("div", {role: "status"}), shown = element("output"), link = element("a", {text: "Ask this for itself"});
  const slider = element("input", {type: "range", min: String(from), max: String(to), value: state.slide || String(at), "aria-label": slides});
  let newest = 0;
  const ask = async () => {
    const mine = ++newest, number = value(+slider.value), asked = fields(number), drawn = verb.options.some((option) => option.name === "plot");
    shown.textContent = String(number);
    link.href = addressOf(verb, asked);
    const {answer} = await library.ask([...wordsOf(verb, asked), ...(drawn ? ["--plot=/dev/null"] : [])]);
    if (mine !== newest) return;
    const picture = answer && answer.json && (answer.chart ? chartOf(name, answer) : drawPicture(JSON.parse(answer.json)));
    box.replaceChildren(...(picture ? [picture] : []), ...(page || !picture ? [element("pre", {text: answer ? answer.text || answer.error : "Stopped."})] : []));
  };
  slider.addEventListener("input", ask);
  slider.addEventListener("change", () => keepState({slide: slider.value}));
  ask();
  return element("div", {class: "sliders wide"}, element("h3", {text: title}), element("label", {}, element("span", {text: slides}), slider, shown), link, box);
}

/* The replica that serve found best under requests that arrive: the same limits, at a rate up to half as much again as it can answer. */
function simulated(fields, data) {
  const verb = verbs.find((one) => one.name === "simulate"), known = new Set(optionsOf(verb).map((option) => option.name));
  const kept = Object.fromEntries(Object.entries(fields).filter(([name]) => name.startsWith("@") || known.has(name)));
  const most = data.best.tokens_per_s_per_chip * data.best.chips / data.request.output;
  return {title: `${data.best.plan} with requests that arrive at random`, verb: "simulate", slides: "requests a second", from: 1, to: 15, at: 7, page: true,
    value: (n) => +(most * n / 10).toPrecision(3),
    fields: (rate) => ({...kept, on: `${data.system.chip}:${data.best.chips}`, plan: data.best.plan, batch: undefined, qps: undefined, arrivals: `poisson:${rate}/s`, requests: "400"})};
}

/* A problem with its numbers as inputs; its answer comes below it. */
function drawProblem(one, number) {
  const [name, fields] = problemOf(one, verbs), verb = verbs.find((each) => each.name === name), inputs = {};
  const link = element("a", {href: addressOf(verb, fields)}, element("code", {text: one.command})), told = element("div", {role: "status"});
  const mine = state.problem === String(number);
  const asked = () => ({...fields, ...Object.fromEntries(Object.entries(inputs).map(([key, input]) => [key, input.value.trim()]))});
  for (const [key, value] of Object.entries(fields))
    if (typeof value === "string") inputs[key] = element("input", {type: "text", value: (mine && state["in." + key]) || value, spellcheck: "false",
      oninput: () => { link.href = addressOf(verb, asked()); }});
  const answer = async () => {
    told.textContent = "Computing …";
    const words = wordsOf(verb, asked()), {answer: given} = await library.ask(words);
    told.replaceChildren(element("pre", {tabindex: "0", text: given ? given.text || given.error : "Stopped."}),
      ...(given && given.text ? [element("p", {}, element("code", {text: shellOf(words)})), element("p", {}, element("code", {text: pythonOf(verb, asked())}))] : []));
  };
  const submitted = (event) => {
    event.preventDefault();
    state = {};
    keepState({problem: String(number), ...Object.fromEntries(Object.entries(inputs).filter(([key, input]) => input.value.trim() !== fields[key])
      .map(([key, input]) => ["in." + key, input.value.trim()]))});
    answer();
  };
  if (mine) answer();
  return element("li", {}, link, element("form", {class: "inputs", onsubmit: submitted},
    ...Object.entries(inputs).map(([key, input]) => element("label", {}, element("span", {text: key.replace("@", "").replace(/-/g, " ")}), input)),
    element("button", {type: "submit", text: "Answer"})), told);
}

/* The rows of a part's figures that a section names; all of them without names: "ai.qps.*". */
function figuresOf(part, items) {
  const named = (item) => !items || items.some((one) => (one.endsWith("*") ? item.startsWith(one.slice(0, -1)) : item === one));
  const rows = part.rows.filter(([item]) => named(item)).map(([item, asks, book, here, remark]) =>
    ({item, "what is asked": asks, "the book": book, "the library": here, remarks: remark}));
  return rows.length ? [drawTable({name: "figures", rows})] : [];
}

/* The book's problems by part, each a question with its numbers as inputs, beside the book's figures. */
function drawLearn(at) {
  const part = LEARN.find((one) => one.name === at) || LEARN[0];
  let number = 0;
  asked++;
  here = "#learn?" + part.name;
  drawVerbs("learn");
  document.title = `${part.title} · scalemodel`;
  $("question").replaceChildren(
    element("p", {class: "about", text: "The problems of How To Scale Your Model, with their numbers as inputs. Choose one, change its numbers, and ask."}),
    element("ol", {class: "parts"}, ...LEARN.map((one) => element("li", {}, element("a", {href: "#learn?" + one.name, text: one.title,
      "aria-current": one === part ? "true" : undefined})))));
  $("error").hidden = $("shown").hidden = $("progress").hidden = true;
  $("status").textContent = "";
  $("learn").replaceChildren(element("h2", {text: part.title}), element("p", {text: part.about}),
    ...(PLOTS[part.name] ? [drawPlot(PLOTS[part.name])] : []),
    ...part.sections.flatMap((section) => [element("h3", {text: section.title}), element("p", {text: section.about}),
      element("ul", {}, ...section.problems.map((one) => drawProblem(one, number++))), ...(section.items.length ? figuresOf(part, section.items) : [])]),
    ...(part.rows.length ? [element("h3", {text: "Every figure"}), ...figuresOf(part)] : []));
}

/* The place that the address names: its form, and its answer where something is asked. */
function goTo(address) {
  const learning = /^#learn(?:\?([^&]*))?/.exec(address || "");
  state = stateOf(address || "");
  $("learn").replaceChildren();
  if (learning) { drawLearn(learning[1]); return; }
  const place = fieldsOf(address || "#" + BEFORE_ANY, verbs) || fieldsOf("#" + BEFORE_ANY, verbs);
  const {verb, fields} = place, face = FACE[verb.name];
  const empty = Object.keys(fields).length === 0;
  drawVerbs(verb.name);
  document.title = `${verb.name} · scalemodel`;
  const shown = empty && face && face.examples.length ? face.examples[0][1] : fields;
  here = addressOf(verb, shown);
  drawForm(verb, shown);
  if (Object.keys(shown).length || verb.least === 0) answerTo(verb, shown);
  else {
    asked++;
    $("status").textContent = verb.name === "profile" ? "Choose a compiled module or a profile of yours." : "";
    $("shown").hidden = $("error").hidden = true;
  }
}

function askForm() {
  const {verb} = fieldsOf(location.hash || "#" + BEFORE_ANY, verbs) || fieldsOf("#" + BEFORE_ANY, verbs);
  const fields = formFields();
  here = addressOf(verb, fields);
  state = {view: state.view};
  if (location.hash !== withState(here, state)) history.pushState(null, "", withState(here, state));
  answerTo(verb, fields);
}

async function begin() {
  if (location.protocol === "file:") await Promise.all(["scalemodel.js", "wasm.js"].map((src) => new Promise((done, failed) =>
    document.head.append(element("script", {src, onload: done, onerror: () => failed(src + " is not beside it")})))));
  library = libraryInThread();
  for (const [name, text] of Object.entries(LEARN_FILES)) library.keep("/" + name, new TextEncoder().encode(text));
  verbs = DESCRIBED.verbs;
  $("version").textContent = `scalemodel ${DESCRIBED.version}.`;
  $("question").addEventListener("submit", (event) => { event.preventDefault(); askForm(); });
  $("stop").addEventListener("click", () => { stopping = asked; library.stop(); });
  window.addEventListener("popstate", () => goTo(location.hash));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    takeFiles(event.dataTransfer.files, document.querySelector('[data-name="@model"], [data-name="@file"]'));
  });
  goTo(location.hash);
  /* From a server, the page opens again without it. */
  if (location.protocol.startsWith("http") && navigator.serviceWorker) navigator.serviceWorker.register("offline.js").catch(() => {});
  const list = async (verb, key) => {
    const {answer} = await library.ask([verb]);
    return answer.json ? (JSON.parse(answer.json)[key] || []).map((one) => one.name || one) : [];
  };
  names = {chips: await list("chip", "chips"), models: await list("model", "models")};
  for (const key of ["chips", "models"])
    document.body.append(element("datalist", {id: "list-" + key}, ...names[key].map((value) => element("option", {value}))));
}

begin().catch((why) => { $("status").textContent = "The library could not be started: " + why; });

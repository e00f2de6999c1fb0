/* worker: the library in a thread of its own, so that the page stays alive. From a server the thread is this file, which
 * loads the library itself; a page that is opened from disk may load no thread from a file, and makes it of their text. */
"use strict";

/* Runs in the worker, or in node: a library that answers {words, files} with {status, forms}. */
function answeringBy(library) {
  const TEXT = 0, JSON_ = 1, CSV = 2, CHART = 3, TIMELINE = 4, ERROR = 5, ERROR_JSON = 6;
  const taken = (pointer, form, width) => {
    const text = library._sm_command_text(pointer, form, width);
    return text ? library.UTF8ToString(text) : null;
  };
  const given = (text) => {
    const size = library.lengthBytesUTF8(text) + 1, at = library._malloc(size);
    library.stringToUTF8(text, at, size);
    return at;
  };
  const forms = (pointer) => ({
    status: library._sm_command_status(pointer),
    text: taken(pointer, TEXT, 80), json: taken(pointer, JSON_, 0), csv: taken(pointer, CSV, 0),
    chart: taken(pointer, CHART, 0), timeline: taken(pointer, TIMELINE, 0),
    error: taken(pointer, ERROR, 0), errorParts: taken(pointer, ERROR_JSON, 0),
  });
  const ask = (words, progress) => {
    const texts = words.map(given), array = library._malloc(4 * (texts.length + 1));
    texts.forEach((text, i) => library.setValue(array + 4 * i, text, "i32"));
    /* sm_command_watch: size, stop, progress, context, four words of 32 bits. */
    /* What progress says is true ends the search: the best so far is the answer. */
    const watch = library._malloc(20), stop = watch + 16;
    const listen = library.addFunction((fraction, best) => progress && progress(fraction, best) && library.setValue(stop, 1, "i32"), "vddi");
    [16, stop, listen, 0, 0].forEach((word, i) => library.setValue(watch + 4 * i, word, "i32"));
    const pointer = library._sm_command_ask(texts.length, array, watch);
    const out = pointer ? forms(pointer) : {status: 5, error: "out of memory"};
    library._sm_command_free(pointer);
    library.removeFunction(listen);
    [...texts, array, watch].forEach((at) => library._free(at));
    return out;
  };
  const describe = () => {
    const pointer = library._sm_command_describe(), out = JSON.parse(taken(pointer, JSON_, 0));
    library._sm_command_free(pointer);
    return out;
  };
  const keep = (name, bytes) => library.FS.writeFile(name, bytes);
  return {ask, describe, keep};
}

/* Runs in the worker, or in node: the library, whose WebAssembly is the text of wasm.js, gzip in base64. */
async function libraryOf(createScalemodel, packed) {
  const decoded = () => Uint8Array.from(atob(packed), (one) => one.charCodeAt(0)); /* ten times as long */
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(packed) : decoded();
  const unpacked = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  return answeringBy(await createScalemodel({print() {}, printErr() {}, wasmBinary: await unpacked.arrayBuffer()}));
}

/* Runs in the worker. A thread that computes hears no message: the page takes back an address that it gave with the
 * question, and the thread looks whether it still stands. */
function serveQuestions() {
  const stands = (address) => {
    try {
      const request = new XMLHttpRequest();
      request.open("GET", address, false);
      request.send();
      return true;
    } catch (gone) { return false; }
  };
  const ready = libraryOf(createScalemodel, WASM);
  self.onmessage = async ({data}) => {
    try {
      const library = await ready;
      for (const file of data.files || []) library.keep(file.name, file.bytes);
      let last = 0;
      const canStop = data.address && stands(data.address);
      const begun = performance.now();
      const answer = library.ask(data.words, (fraction, best) => {
        const now = performance.now();
        if (now - begun < 300 || now - last < 100) return false;
        last = now;
        self.postMessage({id: data.id, fraction, best});
        return canStop && !stands(data.address);
      });
      self.postMessage({id: data.id, answer, seconds: (performance.now() - begun) / 1000});
    } catch (why) {
      self.postMessage({id: data.id, answer: {status: 5, error: "the library failed: " + why}});
    }
  };
}

/* The library for the page: one question at a time. stop() asks for the best so far, and ends a thread that does not
 * answer in three seconds. */
function libraryInThread() {
  let worker, count = 0, files = [];
  const waiting = new Map();
  const fromText = () => {
    const program = `"use strict"; var _scriptDir = ""; const createScalemodel = (${createScalemodel}), WASM = "${WASM}";
      ${answeringBy}\n${libraryOf}\n(${serveQuestions})();`;
    return new Worker(URL.createObjectURL(new Blob([program], {type: "text/javascript"})));
  };
  const begin = () => {
    worker = location.protocol === "file:" ? fromText() : new Worker("worker.js");
    worker.onerror = ({message}) => {
      for (const one of waiting.values()) one.done({answer: {status: 5, error: "the library failed: " + message}});
      waiting.clear();
    };
    worker.onmessage = ({data}) => {
      const one = waiting.get(data.id);
      if (!one) return;
      if (data.fraction !== undefined) return one.progress && one.progress(data.fraction, data.best);
      waiting.delete(data.id);
      URL.revokeObjectURL(one.address);
      one.done(data);
    };
  };
  const send = (question, progress) => new Promise((done) => {
    const id = ++count, address = URL.createObjectURL(new Blob(["asked"]));
    waiting.set(id, {done, progress, address});
    worker.postMessage({...question, id, files, address});
  });
  begin();
  return {
    ask: (words, progress) => send({words}, progress),
    /* What a person dropped: the same name is the same file. */
    keep(name, bytes) { files = [...files.filter((f) => f.name !== name), {name, bytes}]; },
    stop() {
      const stopped = [...waiting];
      for (const [, one] of stopped) URL.revokeObjectURL(one.address);
      setTimeout(() => {
        if (!stopped.some(([id]) => waiting.has(id))) return;
        worker.terminate();
        for (const one of waiting.values()) one.done({stopped: true});
        waiting.clear();
        begin();
      }, 3000);
    },
  };
}

if (typeof importScripts !== "undefined") {
  importScripts("scalemodel.js", "wasm.js");
  serveQuestions();
}
if (typeof module !== "undefined") module.exports = {libraryOf};

/* offline: the page's own files are kept, so that it opens again without its server: the server's where it answers, else those. */
"use strict";
const FILES = ["./", "style.css", "scalemodel.js", "wasm.js", "verbs.js", "values.js", "worker.js", "pictures.js", "learn.js", "page.js"];
const kept = () => caches.open("scalemodel");

self.addEventListener("install", (event) => event.waitUntil(kept().then((files) => files.addAll(FILES)).then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== self.location.origin) return;
  event.respondWith(fetch(event.request).then(async (answer) => {
    if (answer.ok) await (await kept()).put(event.request, answer.clone());
    return answer;
  }, async (gone) => {
    const file = await caches.match(event.request);
    if (file) return file;
    throw gone;
  }));
});

// A worker that unpacks the module and compiles it, so that the page is there before.
"use strict";

addEventListener("message", async ({ data }) => {
  try {
    postMessage({ module: await WebAssembly.compile(lzma(data)) });
  } catch (error) {
    postMessage({ error: String(error) });
  }
});

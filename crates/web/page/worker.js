// The worker: it has the simulator, answers one request at a time, and is ended when nobody wants its answer any more.
"use strict";

let memory;
const exports = new Promise((resolve, reject) => {
  // The first message is the compiled module.
  addEventListener("message", ({ data }) => {
    const page = {
      emit: (at, length) => postMessage({ text: new TextDecoder().decode(new Uint8Array(memory.buffer, at, length)) }),
    };
    WebAssembly.instantiate(data, { page }).then((instance) => {
      memory = instance.exports.memory;
      resolve(instance.exports);
    }, reject);
  }, { once: true });
});

addEventListener("message", async ({ data }) => {
  if (typeof data !== "string") return;
  try {
    const { reserve, answer } = await exports;
    const request = new TextEncoder().encode(data);
    const at = reserve(request.length);
    new Uint8Array(memory.buffer, at, request.length).set(request);
    answer();
  } catch (error) {
    postMessage({ text: JSON.stringify({ kind: "error", message: String(error) }) });
  }
  postMessage({ done: true });
});

// Runs the playground's module in Node: a packed module as the argument, a JSON text a line on standard input, and the last answer of each on standard output.
import { readFileSync } from "node:fs";

// As the page unpacks it.
const lzma = new Function(`${readFileSync(new URL("../page/lzma.js", import.meta.url), "utf8")}; return lzma;`)();
const module = new WebAssembly.Module(lzma(new Uint8Array(readFileSync(process.argv[2]))));
let last;
const page = { emit: (at, length) => { last = new TextDecoder().decode(new Uint8Array(memory.buffer, at, length)); } };
const { memory, reserve, answer } = new WebAssembly.Instance(module, { page }).exports;
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const request = new TextEncoder().encode(line);
  const at = reserve(request.length);
  new Uint8Array(memory.buffer, at, request.length).set(request);
  const begun = performance.now();
  answer();
  console.error(`${(performance.now() - begun).toFixed(0)} ms`);
  console.log(last);
}

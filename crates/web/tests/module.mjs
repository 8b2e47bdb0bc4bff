// Runs the playground's module in Node: a packed module as the argument, then files of laws, a JSON text a line on standard input, and the last answer of each
// on standard output.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const script = (name) => readFileSync(new URL(`../page/${name}.js`, import.meta.url), "utf8");
// As the page unpacks it, and as its worker gives laws to it.
const { lzma, machine } = new Function(`"use strict"; ${["lzma", "law", "machine"].map(script).join("")}; return { lzma, machine };`)();
const [packed, ...laws] = process.argv.slice(2);
const module = new WebAssembly.Module(lzma(new Uint8Array(readFileSync(packed))));
const files = new Map(laws.map((file) => [basename(file), new Uint8Array(readFileSync(file))]));
let last;
const page = {
  emit: (at, length) => { last = new TextDecoder().decode(new Uint8Array(memory.buffer, at, length)); },
  ...machine(() => memory, files),
};
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

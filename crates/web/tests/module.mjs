// Runs the playground's module in Node: a packed module as the argument, then files of laws, a JSON text a line on standard input. On standard output are two lines
// for the last answer of each: its text, and its numbers.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const script = (name) => readFileSync(new URL(`../page/${name}.js`, import.meta.url), "utf8");
// As the page unpacks it, and as its worker gives laws to it.
const parts = ["lzma", "law", "machine", "request"].map(script).join("");
const { lzma, machine, requestBytes } = new Function(`"use strict"; ${parts}; return { lzma, machine, requestBytes };`)();
const [packed, ...laws] = process.argv.slice(2);
const module = new WebAssembly.Module(lzma(new Uint8Array(readFileSync(packed))));
const files = new Map(laws.map((file) => [basename(file), new Uint8Array(readFileSync(file))]));
let last;
const page = {
  emit: (at, length, numbersAt, count) => {
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
    last = `${text}\n${JSON.stringify([...new Float64Array(memory.buffer, numbersAt, count)])}`;
  },
  ...machine(() => memory, files),
};
const { memory, reserve, answer } = new WebAssembly.Instance(module, { page }).exports;
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const request = requestBytes(JSON.parse(line));
  const at = reserve(request.length);
  new Uint8Array(memory.buffer, at, request.length).set(request);
  const begun = performance.now();
  answer();
  console.error(`${(performance.now() - begun).toFixed(0)} ms`);
  console.log(last);
}

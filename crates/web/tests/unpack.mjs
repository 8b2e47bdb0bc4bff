// Unpacks the playground's module, as the page does: the packed module as the argument, the module on standard output.
import { readFileSync, writeSync } from "node:fs";

const source = readFileSync(new URL("../page/lzma.js", import.meta.url), "utf8");
const lzma = new Function(`"use strict"; ${source}; return lzma;`)();
const module = lzma(new Uint8Array(readFileSync(process.argv[2])));
for (let at = 0; at < module.length;) at += writeSync(1, module, at);

// The functions by which the simulator's module lets the browser run laws that are modules: what `crates/web/src/machine.rs` imports.
//
// `memory` gives the simulator's memory, and `files` has the modules by their names.

const TABLE_SIZE = 832;
// The limit of the memory of all laws of a run.
const LAWS_MEMORY_MAX = 2 ** 30;
const READY_MAX = 4;

// SHA-256 (FIPS 180-4) in hexadecimal digits; the browser's own answers later, and the simulator cannot wait. The constants are the first 32 bits behind the
// point of the roots of the first primes: square roots to begin with, cube roots for the 64 steps.
const PRIMES = Array.from({ length: 310 }, (_, index) => index + 2).filter((number, _, all) => all.every((other) => other === number || other * other > number || number % other > 0));
const behindPoint = (root) => Math.floor((root - Math.floor(root)) * 2 ** 32);
const STEPS = Uint32Array.from(PRIMES.slice(0, 64), (prime) => behindPoint(Math.cbrt(prime)));
const sha256 = (bytes) => {
  const length = Math.ceil((bytes.length + 9) / 64) * 64;
  const padded = new Uint8Array(length);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(length - 4, bytes.length * 8);
  const turned = (word, by) => (word >>> by) | (word << (32 - by));
  const state = Uint32Array.from(PRIMES.slice(0, 8), (prime) => behindPoint(Math.sqrt(prime)));
  const words = new Uint32Array(64);
  for (let block = 0; block < length; block += 64) {
    for (let step = 0; step < 64; step += 1) {
      if (step < 16) words[step] = view.getUint32(block + 4 * step);
      else {
        const [early, late] = [words[step - 15], words[step - 2]];
        words[step] = words[step - 16] + (turned(early, 7) ^ turned(early, 18) ^ (early >>> 3)) + words[step - 7] + (turned(late, 17) ^ turned(late, 19) ^ (late >>> 10));
      }
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let step = 0; step < 64; step += 1) {
      const first = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + STEPS[step] + words[step]) | 0;
      const second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, place) => { state[place] += word; });
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
};

const machine = (memory, files) => {
  const modules = new Map();
  // What was made ready lately: each run names its laws anew.
  const ready = [];
  const instances = new Map();
  let last = 0;
  let left = new Uint8Array();
  let failure = 0;
  let total = 0;
  const leave = (text) => { left = new TextEncoder().encode(text); };
  const part = (at, length) => new Uint8Array(memory().buffer, at >>> 0, length >>> 0);
  // Why a call ended early. A stack that overflows is the browser's limit of the depth.
  const failed = ({ fuel, depth } = {}, error = null) => {
    failure = fuel?.value < 0 ? 1 : depth?.value > DEPTH_MAX || error instanceof RangeError ? 2 : 3;
    leave(error?.message ?? String(error));
    return 0;
  };
  // Takes the memory of an instance as it is now. A view of a memory that has grown is of no use any more.
  const look = (one) => {
    one.inside = new Uint8Array(one.exports.memory.buffer);
    total += one.inside.length - one.counted;
    one.counted = one.inside.length;
    if (total > LAWS_MEMORY_MAX) throw new Error("the laws of this run have more memory than a page may have");
  };
  const inside = (one, place, length) => {
    const at = place >>> 0;
    return at + length <= one.inside.length ? one.inside.subarray(at, at + length) : null;
  };
  return {
    law_find: (at, length) => {
      const bytes = files.get(new TextDecoder().decode(part(at, length)));
      if (bytes) left = bytes;
      return bytes ? 1 : 0;
    },
    law_left: () => left.length,
    law_take: (to) => {
      part(to, left.length).set(left);
      left = new Uint8Array();
    },
    law_compile: (at, length) => {
      try {
        // A copy, since the memory may move while the browser reads it.
        const bytes = part(at, length).slice();
        const isSame = (one) => one.bytes.length === bytes.length && one.bytes.every((byte, place) => byte === bytes[place]);
        let one = ready.find(isSame);
        if (!one) {
          one = { bytes, ...prepared(bytes) };
          ready.splice(READY_MAX - 1);
          ready.unshift(one);
        }
        const { module, exports } = one;
        last += 1;
        modules.set(last, module);
        leave(exports.map(([kind, number, name]) => `${kind} ${number} ${name.replace(/[\r\n]/g, " ")}`).join("\n"));
        return last;
      } catch (error) {
        leave(error instanceof Refusal ? error.message : `is not a module that can be run: ${error.message}`);
        return 0;
      }
    },
    law_digest: (at, length) => leave(sha256(part(at, length))),
    law_forget: (module) => { modules.delete(module); },
    law_start: (module) => {
      const one = { counted: 0 };
      try {
        one.exports = new WebAssembly.Instance(modules.get(module), {}).exports;
        look(one);
        one.base = one.exports[TABLE]() >>> 0;
        look(one);
      } catch (error) {
        total -= one.counted;
        // Browsers keep gigabytes of addresses for each memory; Chromium has enough for some 120.
        const isFull = !one.exports && error instanceof RangeError;
        return failed(one.exports, isFull ? new Error("the browser has no room for so many flows with a law from a file") : error);
      }
      one.hooks = HOOKS.map((hook) => one.exports[hook]);
      last += 1;
      instances.set(last, one);
      return last;
    },
    law_base: (instance) => instances.get(instance).base,
    law_size: (instance) => instances.get(instance).inside.length,
    law_end: (instance) => {
      total -= instances.get(instance).counted;
      instances.delete(instance);
    },
    law_call: (instance, hook, at) => {
      const one = instances.get(instance);
      const { buffer } = memory();
      if (one.outside?.buffer !== buffer || one.at !== at) Object.assign(one, { at, outside: part(at, TABLE_SIZE) });
      if (!one.table || one.table.buffer !== one.inside.buffer) one.table = inside(one, one.base, TABLE_SIZE);
      one.table.set(one.outside);
      try {
        one.hooks[hook]();
        if (one.inside.buffer !== one.exports.memory.buffer) {
          look(one);
          one.table = inside(one, one.base, TABLE_SIZE);
        }
      } catch (error) {
        return failed(one.exports, error);
      }
      one.outside.set(one.table);
      return 1;
    },
    law_failure: () => failure,
    law_read: (instance, place, to, length) => {
      const from = inside(instances.get(instance), place, length);
      if (from) part(to, length).set(from);
      return from ? 1 : 0;
    },
    law_write: (instance, place, from, length) => {
      const to = inside(instances.get(instance), place, length);
      if (to) to.set(part(from, length));
      return to ? 1 : 0;
    },
  };
};

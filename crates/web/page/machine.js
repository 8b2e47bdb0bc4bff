// The functions by which the simulator's module lets the browser run laws that are modules: what `crates/web/src/machine.rs` imports.
//
// `memory` gives the simulator's memory, and `files` has the modules by their names.

const TABLE_SIZE = 832;
// The limit of the memory of all laws of a run.
const LAWS_MEMORY_MAX = 2 ** 30;
const READY_MAX = 4;

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
        return failed(one.exports, error);
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

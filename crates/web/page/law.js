// A law that is a module of somebody else, made ready for a browser: within the limits and with the bits that it has under the command.
//
// The command interprets a module and counts what it does. A browser compiles it and counts nothing, and the bits of its NaNs are the processor's. So the
// limits are written into its code: fuel, counted as the interpreter counts it (but for conditions that are constant); the depth of calls; and one NaN. Of
// what it exports only what is called is left. `crates/plugin/src/interpreted.rs` and `limits.rs` have the same limits for the command.

const FUEL = 1_000_000;
const DEPTH_MAX = 500;
const PAGES_MAX = 64;
const ENTRIES_MAX = 10_000;
const HOOKS = ["init", "on_sent", "on_ack", "on_round", "on_loss", "on_recovered", "on_undo", "on_restart", "on_group"];
const TABLE = "anabranch";

class Refusal extends Error {}
const refuse = (why) => { throw new Refusal(why); };
const notRun = (why) => refuse(`is not a module that can be run: ${why}; allowed is WASM 2.0 without vector instructions, threads, 64-bit memories and a start function`);
const within = (what, count, most) => {
  if (count > most) refuse(`has ${count} ${what}; at most ${most} are possible: build it optimised, and export only the hooks`);
};
// A name of a module in a message: short, and nothing that changes how a line reads.
const shownName = (name) => {
  const signs = [...name];
  const plain = signs.slice(0, 60).map((sign) => (/[\p{C}\p{Z}]/u.test(sign) && sign !== " " ? `\\u{${sign.codePointAt(0).toString(16)}}` : sign)).join("");
  return signs.length > 60 ? `${plain}…` : plain;
};

// Reads the binary format of WebAssembly, between two places.
class Reader {
  constructor(bytes, at = 0, end = bytes.length) {
    Object.assign(this, { bytes, at, end });
  }

  get isAtEnd() {
    return this.at >= this.end;
  }

  byte() {
    if (this.at >= this.end) notRun("it ends too early");
    this.at += 1;
    return this.bytes[this.at - 1];
  }

  // An unsigned number of at most 32 bits, by LEB128.
  number() {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
    return notRun("a number is too long");
  }

  // Passes a number by LEB128, of any sign.
  pass() {
    for (let length = 0; length < 10; length += 1) if (this.byte() < 128) return;
    notRun("a number is too long");
  }

  skip(length) {
    if (length > this.end - this.at) notRun("it ends too early");
    this.at += length;
  }

  part(length) {
    const from = this.at;
    this.skip(length);
    return new Reader(this.bytes, from, this.at);
  }

  name() {
    const { at, end } = this.part(this.number());
    if (end - at > 256) refuse(`exports \`${shownName(new TextDecoder().decode(this.bytes.subarray(at, Math.min(end, at + 400))))}\`, a name of more than 256 bytes; give it a shorter one`);
    return new TextDecoder().decode(this.bytes.subarray(at, end));
  }

  rest() {
    return this.bytes.subarray(this.at, this.end);
  }
}

class Writer {
  constructor(room = 256) {
    this.bytes = new Uint8Array(room);
    this.length = 0;
  }

  all(bytes) {
    if (this.length + bytes.length > this.bytes.length) {
      const wider = new Uint8Array(2 * (this.length + bytes.length));
      wider.set(this.bytes.subarray(0, this.length));
      this.bytes = wider;
    }
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
    return this;
  }

  number(value) {
    return this.all(unsigned(value));
  }

  done() {
    return this.bytes.subarray(0, this.length);
  }
}

const unsigned = (value) => {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
};
// A positive number where a signed one stands: its highest bit is that of a sign.
const signed = (value) => {
  const bytes = [];
  for (; value > 63; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
};
// The same, in five bytes, so that it can be set later.
const signedWide = (value) => [0, 7, 14, 21, 28].map((shift, index) => (Math.floor(value / 2 ** shift) % 128) | (index < 4 ? 128 : 0));

// Instructions.
const [I32, F32, F64] = [0x7f, 0x7d, 0x7c];
const [UNREACHABLE, BLOCK, LOOP, IF, ELSE, END, BR, BR_IF, BR_TABLE, RETURN] = [0x00, 0x02, 0x03, 0x04, 0x05, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f];
const [CALL, CALL_INDIRECT, RETURN_CALL, RETURN_CALL_INDIRECT] = [0x10, 0x11, 0x12, 0x13];
const [LOCAL_GET, LOCAL_TEE, GLOBAL_GET, GLOBAL_SET, MEMORY_GROW, I32_CONST] = [0x20, 0x22, 0x23, 0x24, 0x40, 0x41];
const [I32_NE, I32_LT_S, I32_GT_U, I32_ADD, I32_SUB, I32_SHL, I32_SHR_U, SELECT] = [0x47, 0x48, 0x4b, 0x6a, 0x6b, 0x74, 0x76, 0x1b];
const TRAP_IF = [IF, 0x40, UNREACHABLE, END];
// `nop`, `drop` and what only marks a place cost nothing.
const FREE = new Set([UNREACHABLE, 0x01, BLOCK, LOOP, ELSE, END, RETURN, 0x1a]);
// Arithmetic whose result may be a NaN of any bits; a change of the sign alone keeps them.
const inRange = (opcode, least, most) => opcode >= least && opcode <= most;
const makesNan = (opcode) => (inRange(opcode, 0x8d, 0x97) || opcode === 0xb6 ? F32 : inRange(opcode, 0x9b, 0xa5) || opcode === 0xbb ? F64 : null);
const NAN = { [F32]: [0x43, 0, 0, 0xc0, 0x7f, 0x5b], [F64]: [0x44, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0x61] };

// The type of a value, which is a byte; newer ones have several.
const valueType = (reader) => {
  const type = reader.byte();
  if (![I32, 0x7e, F32, F64, 0x70, 0x6f].includes(type)) notRun("it has a type that is not allowed");
  return type;
};

// The code of a function with its limits. It is read as the browser reads it, byte for byte, or refused: what were
// read otherwise could run without a limit. `fuel` and `depth` are the numbers of global variables.
const limited = (body, parameters, types, { fuel, depth }) => {
  const out = new Writer(2 * (body.end - body.at) + 64);
  const groups = body.number();
  let count = parameters;
  const declared = body.at;
  for (let group = 0; group < groups; group += 1) {
    count += body.number();
    within("local variables in a function", count - parameters, 1000);
    valueType(body);
  }
  // Locals of our own: two numbers, and a float of each size.
  out.number(groups + 3).all(body.bytes.subarray(declared, body.at)).all([2, I32, 1, F32, 1, F64]);
  const [length, grown, float32, float64] = [0, 1, 2, 3].map((more) => unsigned(count + more));
  const [getFuel, setFuel] = [[GLOBAL_GET, ...unsigned(fuel)], [GLOBAL_SET, ...unsigned(fuel)]];
  const [getDepth, setDepth] = [[GLOBAL_GET, ...unsigned(depth)], [GLOBAL_SET, ...unsigned(depth)]];
  const pay = (amount) => [...getFuel, ...amount, I32_SUB, ...setFuel, ...getFuel, I32_CONST, 0, I32_LT_S, ...TRAP_IF];
  const deeper = [...getDepth, I32_CONST, 1, I32_ADD, ...setDepth, ...getDepth, I32_CONST, ...signed(DEPTH_MAX), I32_GT_U, ...TRAP_IF];
  const back = [...getDepth, I32_CONST, 1, I32_SUB, ...setDepth];
  // A length on the stack is paid for, and stays.
  const payLength = (shift) => [LOCAL_TEE, ...length, ...pay([LOCAL_GET, ...length, I32_CONST, shift, I32_SHR_U])];
  // What is added is paid for if it is there.
  const payGrowth = (shift) => [LOCAL_TEE, ...grown, I32_CONST, 0x7f, I32_NE, IF, 0x40, ...pay([LOCAL_GET, ...length, I32_CONST, Math.abs(shift), shift > 0 ? I32_SHL : I32_SHR_U]), END, LOCAL_GET, ...grown];

  // Fuel is paid where a function, a loop or a branch of a condition begins, for all that follows in it.
  let meter;
  const metered = () => {
    const [before, after] = [[...getFuel, I32_CONST], [I32_SUB, ...setFuel, ...getFuel, I32_CONST, 0, I32_LT_S, ...TRAP_IF]];
    out.all(before);
    meter = { at: out.length, cost: 1 };
    out.all(signedWide(0)).all(after);
  };
  const settle = (one) => out.bytes.set(signedWide(one.cost), one.at);
  const meters = [];
  const begin = () => {
    metered();
    meters.push(meter);
  };
  begin();
  // Frames: what each is, and the meter outside of it.
  const frames = [{ kind: "function", outer: null }];
  let isReached = true;
  const target = (label) => {
    const frame = frames[frames.length - 1 - label];
    if (frame && isReached) frame.isTarget = true;
  };
  while (frames.length > 0) {
    const from = body.at;
    const opcode = body.byte();
    if (!FREE.has(opcode)) meter.cost += 1;
    const copy = () => out.all(body.bytes.subarray(from, body.at));
    switch (opcode) {
      case BLOCK: case LOOP: case IF: {
        // Nothing, a type of one byte, or the number of one.
        let isOfResults = false;
        if (body.bytes[body.at] === 0x40) body.skip(1);
        else if (inRange(body.bytes[body.at], 0x41, 0x7f)) valueType(body);
        else {
          const type = types[body.number()];
          // A number with the sign of a type's byte, in more bytes than it needs.
          if (!type || body.bytes[body.at - 1] & 0x40) notRun("it has a type that is not allowed");
          isOfResults = type.results.length > 0;
        }
        copy();
        frames.push({ kind: !isReached ? "dead" : opcode === BLOCK ? "block" : opcode === LOOP ? "loop" : "if", outer: meter, isOfResults });
        if (isReached && opcode !== BLOCK) begin();
        break;
      }
      case ELSE: {
        copy();
        const frame = frames[frames.length - 1];
        if (frame.kind === "dead") break;
        frame.kind = "else";
        frame.isThenReached = isReached;
        isReached = true;
        begin();
        break;
      }
      case END: {
        const { kind, outer, isTarget, isThenReached, isOfResults } = frames.pop();
        // The interpreter counts the way past a condition that has results.
        if (kind === "if" && isOfResults) out.all([ELSE, ...pay([I32_CONST, 1])]);
        copy();
        if (kind === "dead") break;
        if (outer) meter = outer;
        isReached ||= kind === "if" || (kind !== "loop" && isTarget) || isThenReached;
        break;
      }
      case BR: case BR_IF:
        target(body.number());
        copy();
        if (opcode === BR) isReached = false;
        break;
      case BR_TABLE:
        for (let labels = body.number(); labels >= 0; labels -= 1) target(body.number());
        copy();
        isReached = false;
        break;
      case UNREACHABLE: case RETURN:
        copy();
        isReached = false;
        break;
      case CALL: case CALL_INDIRECT:
        body.pass();
        if (opcode === CALL_INDIRECT) body.pass();
        out.all(deeper);
        copy();
        out.all(back);
        break;
      case RETURN_CALL: case RETURN_CALL_INDIRECT:
        body.pass();
        if (opcode === RETURN_CALL_INDIRECT) body.pass();
        copy();
        isReached = false;
        break;
      case MEMORY_GROW:
        body.pass();
        out.all([LOCAL_TEE, ...length]);
        copy();
        // 1,024 for a page.
        out.all(payGrowth(10));
        break;
      case 0xfc: {
        const more = body.number();
        if (more > 17) notRun("it has an instruction that is not allowed");
        if (more >= 8) body.pass();
        if (more === 8 || more === 10 || more === 12 || more === 14) body.pass();
        // 64 bytes of a memory, or 16 entries of a table.
        if (more === 8 || more === 10 || more === 11) out.all(payLength(6));
        if (more === 12 || more === 14 || more === 17) out.all(payLength(4));
        if (more === 15) out.all([LOCAL_TEE, ...length]);
        copy();
        if (more === 15) out.all(payGrowth(-4));
        break;
      }
      default: {
        if (inRange(opcode, 0x20, 0x26) || opcode === I32_CONST || opcode === 0x42 || opcode === 0x3f || opcode === 0xd0 || opcode === 0xd2) body.pass();
        else if (inRange(opcode, 0x28, 0x3e)) {
          if (body.number() >= 64) notRun("it has several memories");
          body.pass();
        } else if (opcode === 0x43) body.skip(4);
        else if (opcode === 0x44) body.skip(8);
        else if (opcode === 0x1c) {
          for (let types = body.number(); types > 0; types -= 1) valueType(body);
        }
        else if (opcode !== 0x01 && opcode !== 0x1a && opcode !== SELECT && opcode !== 0xd1 && !inRange(opcode, 0x45, 0xc4)) notRun("it has an instruction that is not allowed");
        copy();
        const type = makesNan(opcode);
        if (type) {
          const local = type === F32 ? float32 : float64;
          const nan = NAN[type];
          out.all([LOCAL_TEE, ...local, ...nan.slice(0, -1), LOCAL_GET, ...local, LOCAL_GET, ...local, nan.at(-1), SELECT]);
        }
      }
    }
  }
  meters.forEach(settle);
  return out.done();
};

// The least and the largest number of a memory or a table, which may have no largest.
const limitsOf = (reader) => {
  const flags = reader.byte();
  if (flags > 1) notRun("it has a memory that is shared or of 64 bits");
  return { least: reader.number(), most: flags === 1 ? reader.number() : Infinity };
};
const limitsWithin = ({ least, most }, limit) => [1, ...unsigned(least), ...unsigned(Math.max(least, Math.min(most, limit)))];

// Passes a constant expression.
const passConstant = (reader) => {
  for (;;) {
    const opcode = reader.byte();
    if (opcode === END) return;
    if (opcode === 0x41 || opcode === 0x42 || opcode === GLOBAL_GET || opcode === 0xd0 || opcode === 0xd2) reader.pass();
    else if (opcode === 0x43) reader.skip(4);
    else if (opcode === 0x44) reader.skip(8);
    else if (!inRange(opcode, 0x6a, 0x6c) && !inRange(opcode, 0x7c, 0x7e)) notRun("it has an instruction that is not allowed");
  }
};

// The entries that the segments of a module write into its function tables.
const entriesOf = (reader) => {
  let entries = 0;
  const count = reader.number();
  within("segments of function tables", count, 1000);
  for (let segment = 0; segment < count; segment += 1) {
    const flags = reader.number();
    if (flags > 7) notRun("a segment of a function table is of no kind");
    if ((flags & 1) === 0) {
      if (flags & 2) reader.pass();
      passConstant(reader);
    }
    if (flags & 3 && ![0x00, 0x70, 0x6f].includes(reader.byte())) notRun("a segment of a function table is of no kind");
    const length = reader.number();
    entries += length;
    within("entries of function tables", entries, ENTRIES_MAX);
    for (let entry = 0; entry < length; entry += 1) {
      if (flags & 4) passConstant(reader);
      else reader.pass();
    }
  }
};

// The sections of a module by their numbers, each once.
const sectionsOf = (bytes) => {
  const reader = new Reader(bytes, 8);
  const sections = new Map();
  while (!reader.isAtEnd) {
    const id = reader.byte();
    const part = reader.part(reader.number());
    if (id === 0) continue;
    if (sections.has(id)) notRun("a section is there twice");
    sections.set(id, part);
  }
  return sections;
};

// A module, compiled with its limits, and what the given bytes export: [kind, number, name] each.
const prepared = (bytes) => {
  const sections = sectionsOf(bytes);
  const section = (id) => {
    const part = sections.get(id);
    return part ? new Reader(bytes, part.at, part.end) : new Reader(bytes, 0, 0);
  };
  const listed = (id, what, most, each) => {
    const reader = section(id);
    const count = reader.isAtEnd ? 0 : reader.number();
    within(what, count, most);
    return Array.from({ length: count }, () => each(reader));
  };
  const imports = section(2);
  if (!imports.isAtEnd && imports.number() > 0) {
    const text = () => {
      const { at, end } = imports.part(imports.number());
      return shownName(new TextDecoder().decode(bytes.subarray(at, Math.min(end, at + 400))));
    };
    const [module, name] = [text(), text()];
    refuse(`imports \`${name}\` of \`${module}\`, and there is nothing to import: no clock, no file, no randomness and no output; remove what calls it`);
  }
  if (sections.has(8)) notRun("it has a start function");
  if (sections.has(13)) notRun("it has exceptions");
  const types = listed(1, "function types", 1000, (reader) => {
    if (reader.byte() !== 0x60) notRun("it has a type that is not allowed");
    const list = () => Array.from({ length: Math.min(33, reader.number()) }, () => valueType(reader));
    const [parameters, results] = [list(), list()];
    within("parameters or results of a function", Math.max(parameters.length, results.length), 32);
    return { parameters, results };
  });
  const functions = listed(3, "functions", 10_000, (reader) => reader.number());
  const tables = listed(4, "function tables", 100, (reader) => {
    const type = reader.byte();
    if (type !== 0x70 && type !== 0x6f) notRun("it has a table that is not allowed");
    const limits = limitsOf(reader);
    within("entries of function tables", limits.least, ENTRIES_MAX);
    return [type, ...limitsWithin(limits, ENTRIES_MAX)];
  });
  const memories = listed(5, "memories", 1, limitsOf);
  const globals = section(6);
  const globalCount = globals.isAtEnd ? 0 : globals.number();
  within("global variables", globalCount, 1000);
  const exported = listed(7, "exports", 1000, (reader) => ({ name: reader.name(), kind: reader.byte(), index: reader.number() }));
  if (sections.has(9)) entriesOf(section(9));
  const segments = section(11);
  if (!segments.isAtEnd) within("data segments", segments.number(), 1000);
  // Now that it is small, the browser may look at all of it.
  if (!WebAssembly.validate(bytes)) {
    try {
      new WebAssembly.Module(bytes);
    } catch (error) {
      notRun(String(error.message).replace(/^WebAssembly\.Module\(\): /, ""));
    }
  }
  const typeOf = (index) => types[functions[index]];
  const kindOf = ({ kind, index }) => {
    if (kind === 2) return ["memory", memories[index].least * 65_536];
    if (kind !== 0) return ["other", 0];
    const { parameters, results } = typeOf(index);
    if (parameters.length > 0) return ["other", 0];
    return [results.length === 0 ? "plain" : results.length === 1 && results[0] === I32 ? "address" : "other", 0];
  };
  // What is called sets fuel and depth, and then calls the module's function.
  const called = exported.filter((one) => (HOOKS.includes(one.name) && kindOf(one)[0] === "plain") || (one.name === TABLE && kindOf(one)[0] === "address"));
  const places = { fuel: globalCount, depth: globalCount + 1 };
  const bodies = listed(10, "functions", 10_000, (reader) => reader.part(reader.number()));
  const code = new Writer(4 * bytes.length).number(bodies.length + called.length);
  bodies.forEach((body, index) => {
    const made = limited(body, typeOf(index).parameters.length, types, places);
    code.number(made.length).all(made);
  });
  for (const { index } of called) {
    const body = [0, I32_CONST, ...signed(FUEL), GLOBAL_SET, ...unsigned(places.fuel), I32_CONST, 1, GLOBAL_SET, ...unsigned(places.depth), CALL, ...unsigned(index), END];
    code.number(body.length).all(body);
  }
  const number = [I32, 1, I32_CONST, 0, END];
  const name = (text) => [...unsigned(text.length), ...new TextEncoder().encode(text)];
  const memory = exported.find((one) => one.name === "memory" && one.kind === 2);
  const exports = [
    ...called.map((one, place) => [...name(one.name), 0, ...unsigned(functions.length + place)]),
    ...(memory ? [[...name("memory"), 2, ...unsigned(memory.index)]] : []),
    [...name("fuel"), 3, ...unsigned(places.fuel)],
    [...name("depth"), 3, ...unsigned(places.depth)],
  ];
  const list = (items) => new Writer().number(items.length).all(items.flat()).done();
  const changed = new Map([
    [3, list([...functions, ...called.map(({ index }) => functions[index])].map(unsigned))],
    [4, tables.length > 0 ? list(tables) : null],
    [5, memories.length > 0 ? list(memories.map((limits) => limitsWithin(limits, PAGES_MAX))) : null],
    [6, new Writer().number(globalCount + 2).all(globals.rest()).all(number).all(number).done()],
    [7, list(exports)],
    [10, code.done()],
  ]);
  const out = new Writer(5 * bytes.length).all(bytes.subarray(0, 8));
  for (const id of [1, 3, 4, 5, 6, 7, 9, 12, 10, 11]) {
    const content = changed.has(id) ? changed.get(id) : sections.has(id) ? section(id).rest() : null;
    if (content) out.all([id]).number(content.length).all(content);
  }
  return { module: new WebAssembly.Module(out.done()), exports: exported.map((one) => [...kindOf(one), one.name]) };
};

// Unpacks LZMA by its specification (LZMA SDK, lzma-specification.txt): what browsers can unpack themselves, gzip, would be a third larger.
//
// A coder of ranges reads bits whose chances adapt; a bit tells whether a byte follows or a copy of earlier ones, and of which length and distance. The
// file begins with the parameters, the size of a dictionary, which is not needed here, and the size of what is packed.

const lzma = (packed) => {
  const view = new DataView(packed.buffer, packed.byteOffset);
  const properties = packed[0];
  const lc = properties % 9;
  const lp = Math.floor(properties / 9) % 5;
  const pb = Math.floor(properties / 45);
  const size = view.getUint32(5, true);
  const out = new Uint8Array(size);
  // Probabilities that a bit is 0, of 2048.
  const chances = (count) => new Uint16Array(count).fill(1024);
  let at = 18;
  // In an array, because a variable that closures share would be a new object for each number of more than 30 bits.
  const coder = Uint32Array.of(0xffffffff, view.getUint32(14));
  const bit = (model, index) => {
    const chance = model[index];
    const range = coder[0];
    const bound = Math.imul(range >>> 11, chance) >>> 0;
    const code = coder[1];
    let value;
    let width;
    if (code < bound) {
      width = bound;
      model[index] = chance + ((2048 - chance) >>> 5);
      value = 0;
    } else {
      width = range - bound;
      coder[1] = code - bound;
      model[index] = chance - (chance >>> 5);
      value = 1;
    }
    if (width < 0x1000000) {
      width <<= 8;
      coder[1] = (coder[1] << 8) | packed[at];
      at += 1;
    }
    coder[0] = width;
    return value;
  };
  const direct = (count) => {
    let value = 0;
    for (let left = count; left > 0; left -= 1) {
      coder[0] >>>= 1;
      const isOne = coder[1] >= coder[0];
      if (isOne) coder[1] -= coder[0];
      value = value * 2 + (isOne ? 1 : 0);
      if (coder[0] < 0x1000000) {
        coder[0] <<= 8;
        coder[1] = (coder[1] << 8) | packed[at];
        at += 1;
      }
    }
    return value;
  };
  const tree = (model, from, bits) => {
    let node = 1;
    for (let left = bits; left > 0; left -= 1) node = node * 2 + bit(model, from + node);
    return node - (1 << bits);
  };
  // The lowest bit first.
  const reverse = (model, from, bits) => {
    let node = 1;
    let value = 0;
    for (let place = 0; place < bits; place += 1) {
      const one = bit(model, from + node);
      node = node * 2 + one;
      value |= one << place;
    }
    return value;
  };
  const lengths = () => ({ choice: chances(2), low: chances(16 << 3), middle: chances(16 << 3), high: chances(256) });
  const length = ({ choice, low, middle, high }, position) => {
    if (bit(choice, 0) === 0) return 2 + tree(low, position << 3, 3);
    if (bit(choice, 1) === 0) return 10 + tree(middle, position << 3, 3);
    return 18 + tree(high, 0, 8);
  };
  const literals = chances(0x300 << (lc + lp));
  const isMatch = chances(12 << 4);
  const isRepeated = chances(12);
  const isLater = [chances(12), chances(12), chances(12)];
  const isLong = chances(12 << 4);
  const slots = chances(4 << 6);
  const special = chances(128);
  const aligned = chances(16);
  const [lengthsNew, lengthsRepeated] = [lengths(), lengths()];
  // What the last parts were: bytes, copies or repeated copies.
  let state = 0;
  let distances = [0, 0, 0, 0];
  let end = 0;
  while (end < size) {
    const position = end & ((1 << pb) - 1);
    if (bit(isMatch, (state << 4) + position) === 0) {
      const before = end > 0 ? out[end - 1] : 0;
      const from = 0x300 * (((end & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
      let node = 1;
      if (state >= 7) {
        let matched = out[end - distances[0] - 1];
        do {
          const expected = (matched >> 7) & 1;
          matched <<= 1;
          const one = bit(literals, from + ((1 + expected) << 8) + node);
          node = node * 2 + one;
          if (one !== expected) break;
        } while (node < 256);
      }
      while (node < 256) node = node * 2 + bit(literals, from + node);
      out[end] = node;
      end += 1;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let count;
    if (bit(isRepeated, state) === 1) {
      if (bit(isLater[0], state) === 0) {
        if (bit(isLong, (state << 4) + position) === 0) {
          out[end] = out[end - distances[0] - 1];
          end += 1;
          state = state < 7 ? 9 : 11;
          continue;
        }
      } else {
        const which = bit(isLater[1], state) === 0 ? 1 : bit(isLater[2], state) === 0 ? 2 : 3;
        distances = [distances[which], ...distances.filter((_, index) => index !== which)];
      }
      count = length(lengthsRepeated, position);
      state = state < 7 ? 8 : 11;
    } else {
      count = length(lengthsNew, position);
      state = state < 7 ? 7 : 10;
      const slot = tree(slots, Math.min(count - 2, 3) << 6, 6);
      let distance = slot;
      if (slot >= 4) {
        const bits = (slot >> 1) - 1;
        const base = (2 | (slot & 1)) * 2 ** bits;
        distance = slot < 14 ? base + reverse(special, base - slot, bits) : base + direct(bits - 4) * 16 + reverse(aligned, 0, 4);
      }
      distances = [distance, distances[0], distances[1], distances[2]];
    }
    const back = distances[0] + 1;
    if (back > end || at > packed.length) throw new Error("the packed data are damaged");
    const until = Math.min(end + count, size);
    for (; end < until; end += 1) out[end] = out[end - back];
  }
  return out;
};

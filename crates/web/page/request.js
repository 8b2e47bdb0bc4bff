// A request as the module reads it: keys and values in turns, each a text after its length in bytes (`crates/web/src/request.rs`).

const requestPairs = ({ ask, name, file, opens, variant, seed, packets, view }) => [
  ["ask", ask],
  ...(name === undefined ? [] : [["name", name]]),
  ...(file ? [["name", file.name], ["text", file.text], ...Object.entries(file.bases ?? {}).map(([base, text]) => [`base ${base}`, text])] : []),
  ...(file?.set ?? []).map((set) => ["set", set]),
  ...(file?.laws ?? []).map((law) => ["law", law]),
  ...(variant ?? []).map((label) => ["variant", label]),
  ...Object.entries({ opens, seed, packets, view }).filter(([, value]) => value != null).map(([key, value]) => [key, String(value)]),
];

const requestBytes = (request) => {
  const encoder = new TextEncoder();
  const texts = requestPairs(request).flat().map((text) => encoder.encode(text));
  const bytes = new Uint8Array(texts.reduce((sum, text) => sum + 4 + text.length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const text of texts) {
    view.setUint32(at, text.length, true);
    bytes.set(text, at + 4);
    at += 4 + text.length;
  }
  return bytes;
};

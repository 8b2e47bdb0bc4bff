// The scene that the sliders describe, its TOML, and the address that carries it.

// Every control: its key in the address, and what it may be. Values from an address are checked against this list.
const CONTROLS = [
  { key: "rate", label: "Rate", unit: "Mbit/s", least: 0.5, most: 1000, value: 20, scale: "log" },
  { key: "delay", label: "Delay, one way", unit: "ms", least: 1, most: 500, value: 20, scale: "log" },
  { key: "queue", label: "Queue", value: "drop_tail", options: ["drop_tail", "red", "codel", "fq_codel", "pie", "dualpi2"] },
  { key: "size", label: "Size of the queue", unit: "packets", least: 2, most: 2000, value: 60, scale: "log", whole: true },
  { key: "loss", label: "Random loss", unit: "%", least: 0, most: 10, value: 0, step: 0.1 },
  { key: "jitter", label: "Jitter", unit: "ms", least: 0, most: 50, value: 0, step: 1 },
  { key: "rival", label: "A rival from half of the time on", value: "none", options: [] },
  { key: "reroute", label: "A longer route at half of the time", unit: "× delay", least: 1, most: 5, value: 1, step: 0.5 },
  { key: "fade", label: "A fade for a fifth of the time", unit: "% of the rate", least: 0, most: 95, value: 0, step: 5 },
  { key: "flows", label: "Flows", least: 1, most: 8, value: 1, step: 1, whole: true },
  { key: "time", label: "Simulated time", unit: "s", least: 2, most: 120, value: 20, step: 1, whole: true },
  { key: "seed", label: "Seed", least: 1, most: 999, value: 1, step: 1, whole: true },
];

const control = (key) => CONTROLS.find((one) => one.key === key);

const defaults = () => Object.fromEntries(CONTROLS.map(({ key, value }) => [key, value]));

// A value that a control may have, or its default.
const checked = (one, value) => {
  if (one.options) return one.options.includes(value) ? value : one.value;
  const number = Number(value);
  if (value === "" || value === null || !Number.isFinite(number)) return one.value;
  const held = Math.min(one.most, Math.max(one.least, number));
  return one.whole ? Math.round(held) : held;
};

const quoted = (text) => JSON.stringify(text);
const rounded = (value) => String(+value.toPrecision(6));

// A law of one's own is a module, and is called what its file is called.
const isOwn = (name) => name.endsWith(".wasm");

// A law and its settings as they are written into a table.
const tomlOf = ({ name, settings = {} }) => Object.entries({ [isOwn(name) ? "plugin" : "name"]: name, ...settings })
  .map(([key, value]) => `${key.includes(".") ? quoted(key) : key} = ${typeof value === "string" ? quoted(value) : value}`).join(", ");

// The scenario in TOML. `law` is { name, settings } of the flows.
const sceneToml = (scene, law) => {
  const half = scene.time / 2;
  const rate = `${rounded(scene.rate)}Mbit/s`;
  const queue = scene.queue === "drop_tail" ? `{ kind = "drop_tail", packets = ${scene.size} }` : `{ kind = ${quoted(scene.queue)}, packets = ${scene.size} }`;
  const lines = [
    "# What does this law make of this path?",
    `duration = "${scene.time}s"`,
    `seed = ${scene.seed}`,
    "",
    "[[link]]",
    'id = "path"',
    'from = "R1"',
    'to = "R2"',
    `rate = "${rate}"`,
    `delay = "${rounded(scene.delay)}ms"`,
    `queue = ${queue}`,
  ];
  if (scene.loss > 0) lines.push(`error = { kind = "uniform", rate = ${rounded(scene.loss / 100)} }`);
  if (scene.reroute > 1) lines.push(`delay_changes = [{ at = "${half}s", delay = "${rounded(scene.delay * scene.reroute)}ms" }]`);
  if (scene.fade > 0) {
    const low = `${rounded(scene.rate * (1 - scene.fade / 100))}Mbit/s`;
    lines.push(`rate_changes = [{ at = "${rounded(0.6 * scene.time)}s", rate = "${low}" }, { at = "${rounded(0.8 * scene.time)}s", rate = "${rate}" }]`);
  }
  const ends = [["source", "S#", "R1"], ["sink", "R2", "D#"]];
  const count = scene.flows + (scene.rival === "none" ? 0 : 1);
  // Jitter comes behind the queue, on links of its own: one whose delay changes has no hold besides.
  const hold = scene.jitter > 0 ? [`hold = { kind = "exponential", mean = "${rounded(scene.jitter)}ms" }`] : [];
  for (const [id, from, to] of ends) {
    lines.push("", "[[link]]", `id = "${id}#"`, `count = ${count}`, `from = "${from}"`, `to = "${to}"`, 'rate = "10Gbit/s"', 'delay = "100us"', 'queue = { kind = "unlimited" }', ...(id === "sink" ? hold : []), 'reverse = { queue = { kind = "unlimited" } }');
  }
  for (let index = 0; index < count; index += 1) {
    const isRival = index === scene.flows;
    const cc = tomlOf(isRival ? { name: scene.rival } : law);
    lines.push("", "[[flow]]", `id = "${isRival ? "rival" : `f${index}`}"`, `from = "S${index}"`, `to = "D${index}"`);
    if (isRival) lines.push(`start = "${half}s"`);
    lines.push('transport = "anabranch"', 'packet = "1500B"', `cc = { ${cc} }`);
  }
  return `${lines.join("\n")}\n`;
};

// The address: what differs from the defaults, or a whole text, compressed.
const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
const packedText = async (text) => base64url(await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw")));

const ADDRESS_MAX = 100_000; // signs
const TEXT_MAX = 200_000; // bytes, unpacked

// The text of an address. A few bytes can unpack to gigabytes, so it stops at a limit.
const unpackedText = async (packed) => {
  if (packed.length > ADDRESS_MAX) throw new Error("the address is too long");
  const bytes = Uint8Array.from(atob(packed.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > TEXT_MAX) {
      await reader.cancel();
      throw new Error("the scenario in the address is too long");
    }
    parts.push(value);
  }
  return new Blob(parts).text();
};

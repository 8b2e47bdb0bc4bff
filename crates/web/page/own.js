// Laws of one's own: modules, as docs/own-controllers.md makes them, that somebody drops onto the page or chooses as files.

const OWN_MAX = 16;
const OWN_BYTES_MAX = 4 * 2 ** 20;
// The longest time in milliseconds in which a module is compiled and looked at.
const OWN_MS_MAX = 20_000;
const OWN_NAME = /^[\p{L}\p{N}_+()-][\p{L}\p{N}_+(). -]{0,90}\.wasm$/u;

// The modules that a scenario names, as it names them.
const lawsIn = (text) => [...new Set([...text.matchAll(/\bplugin["']?\s*=\s*["']([^"'\n]+\.wasm)["']/g)].map(([, name]) => name))];

// Those of them that are not here.
const missingIn = (text) => lawsIn(text).map(baseOf).filter((name) => !ownFiles.has(name));

const isOwnName = (name) => OWN_NAME.test(name);

// What is said where a law is wanted that is not here.
const missingLaw = (names) => `This scene needs the law ${names.join(" and ")}, which an address cannot hold. Drop the file onto the page, or choose it by “Law from a file”.`;

// Reads a file, and lets the simulator look at it in a worker of its own. Returns the law as the others are listed; throws what is wrong with it.
const readOwn = async (file) => {
  const { name } = file;
  if (!isOwnName(name)) throw new Error(`${name} is not taken for a law: that is a file .wasm, with letters, digits, spaces and . _ - + ( ) in its name`);
  if (file.size > OWN_BYTES_MAX) throw new Error(`${name} has ${(file.size / 1e6).toFixed(0)} MB, and a law has at most ${OWN_BYTES_MAX / 2 ** 20} MiB; build it optimised and without debugging information`);
  if (!ownFiles.has(name) && ownFiles.size >= OWN_MAX) throw new Error(`${name} is not taken: there are ${OWN_MAX} laws of yours already; open the page anew for others`);
  const bytes = new Uint8Array(await file.arrayBuffer().catch(() => { throw new Error(`${name} cannot be read; if it is a folder, drop the file in it`); }));
  const before = ownFiles.get(name);
  ownFiles.set(name, bytes);
  const engine = new Engine();
  engine.patience = OWN_MS_MAX;
  let answer = null;
  await engine.ask({ ask: "law", name }, (one) => { answer = one; });
  engine.end();
  if (answer?.kind !== "law") {
    if (before) ownFiles.set(name, before);
    else ownFiles.delete(name);
    throw new Error(answer?.message ?? `${name} was not looked at`);
  }
  return { name, summary: `a law of yours with the hooks ${answer.hooks.join(", ")}`, settings: answer.settings };
};

// Takes files that are dropped anywhere, and those that are chosen. `take` gets them.
const listenForFiles = (take) => {
  const [button, input, curtain] = [byId("own-law"), byId("own-law-file"), byId("dropping")];
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", async () => {
    await take([...input.files]);
    // So that the same file can be chosen again after it was built anew.
    input.value = "";
  });
  const hasFiles = ({ dataTransfer }) => [...(dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    curtain.hidden = false;
  });
  addEventListener("dragleave", ({ relatedTarget }) => { if (!relatedTarget) curtain.hidden = true; });
  addEventListener("drop", (event) => {
    curtain.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    take([...event.dataTransfer.files]);
  });
};

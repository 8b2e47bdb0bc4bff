// The page's side of the simulator: it unpacks the module once, and gives each side of a comparison a worker of its own.

const packed = (id) => {
  const signs = atob(document.getElementById(id).textContent.trim());
  const bytes = new Uint8Array(signs.length);
  // `Uint8Array.from` with a function takes several times as long.
  for (let at = 0; at < signs.length; at += 1) bytes[at] = signs.charCodeAt(at);
  return bytes;
};
const unpacked = (id) => new Response(new Blob([packed(id)]).stream().pipeThrough(new DecompressionStream("gzip")));

const sourceOf = (id) => URL.createObjectURL(new Blob([document.getElementById(id).textContent], { type: "text/javascript" }));
const workerSource = sourceOf("worker");

const compiled = new Promise((resolve, reject) => {
  const worker = new Worker(sourceOf("unpacker"));
  worker.onmessage = ({ data: { module, error } }) => {
    worker.terminate();
    if (module) resolve(module);
    else reject(new Error(error));
  };
  worker.onerror = (event) => reject(new Error(event.message || "the module cannot be unpacked"));
  const bytes = packed("module");
  worker.postMessage(bytes, [bytes.buffer]);
});

// The laws that somebody gave to the page: the files by their names.
const ownFiles = new Map();
const baseOf = (name) => name.split(/[/\\]/).pop();

// The longest time of a run in milliseconds. A link is anybody's, and what it brings may take hours, whatever a simulator counts.
const RUN_MS_MAX = 180_000;

// A worker that gets the module as soon as it is compiled, before any request.
const startedWorker = () => {
  const worker = new Worker(workerSource);
  compiled.then((module) => worker.postMessage(module), () => {});
  return worker;
};

class Engine {
  constructor() {
    this.worker = null;
    this.number = 0;
    this.patience = RUN_MS_MAX;
  }

  // Sends a request. `take` receives each answer. Returns whether it came to its end: a later request ends an earlier one.
  async ask(request, take) {
    const number = ++this.number;
    // A simulation cannot be interrupted, but its worker can be ended; a new one starts within milliseconds.
    if (this.isBusy) this.end();
    this.worker ??= startedWorker();
    await compiled;
    if (number !== this.number) return false;
    this.isBusy = true;
    return new Promise((resolve) => {
      const watchdog = setTimeout(() => {
        const [what, remedy] = request.ask === "law" ? ["the look at the module", "build it optimised"] : ["the run", "make it shorter or slower, or use `anabranch sim run`"];
        take({ kind: "error", message: `${what} was ended after ${this.patience / 1000} s; ${remedy}` });
        resolve(true);
        this.end();
      }, this.patience);
      this.leave = () => {
        clearTimeout(watchdog);
        resolve(false);
      };
      this.worker.onmessage = ({ data }) => {
        if (data.text) take(wholeAnswer(data.text, data.numbers));
        if (data.done) {
          clearTimeout(watchdog);
          this.isBusy = false;
          this.leave = null;
          resolve(true);
          // What trapped has lost its order.
          if (data.isBroken) this.end();
        }
      };
      this.worker.onerror = (event) => {
        take({ kind: "error", message: event.message || "the worker failed" });
        resolve(true);
        this.end();
      };
      const names = request.ask === "law" ? [request.name] : request.file?.laws ?? [];
      const laws = names.filter((name) => ownFiles.has(baseOf(name))).map((name) => [name, ownFiles.get(baseOf(name))]);
      this.worker.postMessage({ request, laws });
    });
  }

  // Ends a request that is under way.
  stop() {
    this.number += 1;
    if (this.isBusy) this.end();
  }

  end() {
    this.worker?.terminate();
    this.worker = null;
    this.isBusy = false;
    this.leave?.();
    this.leave = null;
  }
}

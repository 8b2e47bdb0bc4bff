// The page's side of the simulator: it unpacks the module once, and gives each side of a comparison a worker of its own.

const unpacked = (id) => {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (sign) => sign.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
};

const compiled = unpacked("module").arrayBuffer().then((bytes) => WebAssembly.compile(bytes));
const workerSource = URL.createObjectURL(new Blob([document.getElementById("worker").textContent], { type: "text/javascript" }));

class Engine {
  constructor() {
    this.worker = null;
    this.number = 0;
  }

  // Sends a request. `take` receives each answer. Returns whether it came to its end: a later request ends an earlier one.
  async ask(request, take) {
    const number = ++this.number;
    const module = await compiled;
    if (number !== this.number) return false;
    // A simulation cannot be interrupted, but its worker can be ended; a new one starts within milliseconds.
    if (this.isBusy) this.end();
    if (!this.worker) {
      this.worker = new Worker(workerSource);
      this.worker.postMessage(module);
    }
    this.isBusy = true;
    return new Promise((resolve) => {
      this.leave = () => resolve(false);
      this.worker.onmessage = ({ data }) => {
        if (data.done) {
          this.isBusy = false;
          this.leave = null;
          resolve(true);
        } else {
          take(JSON.parse(data.text));
        }
      };
      this.worker.onerror = (event) => {
        take({ kind: "error", message: event.message || "the worker failed" });
        this.end();
      };
      this.worker.postMessage(JSON.stringify(request));
    });
  }

  // Ends a request that is under way.
  stop() {
    this.number += 1;
    if (this.isBusy) this.end();
  }

  end() {
    this.worker.terminate();
    this.worker = null;
    this.isBusy = false;
    this.leave?.();
    this.leave = null;
  }
}

// The worker: it has the simulator, answers one request at a time, and is ended when nobody wants its answer any more.

let memory;
// Whether an answer was an error: a module that panics says why, and then traps.
let isTold = false;
// The end of a run goes with the news that the request is answered, so that the page draws both at once.
let end = null;
// The laws that the page was given, by the names of their files.
const files = new Map();
const MEMORY = "the simulator stopped; most likely the run needs more memory than a page may have, so make it shorter or slower, or use `anabranch sim run`: ";
const tell = (message) => postMessage({ text: JSON.stringify({ kind: "error", message }) });
const exports = new Promise((resolve, reject) => {
  // The first message is the compiled module.
  addEventListener("message", ({ data }) => {
    const page = {
      emit: (at, length, numbersAt, count) => {
        const text = new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
        isTold = isTold || text.includes('"kind":"error"');
        const numbers = new Float64Array(memory.buffer, numbersAt, count).slice();
        if (text.includes('"kind":"end"')) end = { text, numbers };
        else postMessage({ text, numbers }, [numbers.buffer]);
      },
      ...machine(() => memory, files),
    };
    WebAssembly.instantiate(data, { page }).then((instance) => {
      memory = instance.exports.memory;
      resolve(instance.exports);
    }, reject);
  }, { once: true });
});

addEventListener("message", async ({ data }) => {
  if (!data.request) return;
  isTold = false;
  end = null;
  let isBroken = false;
  try {
    const { reserve, answer } = await exports;
    files.clear();
    data.laws.forEach(([name, bytes]) => files.set(name, bytes));
    const request = requestBytes(data.request);
    const at = reserve(request.length);
    new Uint8Array(memory.buffer, at, request.length).set(request);
    answer();
  } catch (error) {
    isBroken = true;
    // A panic is told before its trap. Without one, memory was refused.
    if (!isTold) tell(MEMORY + error);
  }
  postMessage({ ...end, done: true, isBroken }, end ? [end.numbers.buffer] : []);
});

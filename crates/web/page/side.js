// One side of a comparison: an engine, its charts, its picture and its numbers.

class Side {
  constructor(told) {
    this.told = told;
    this.engine = new Engine();
    this.title = "";
    this.place = document.createElement("div");
    this.place.className = "side";
    this.head = this.place.appendChild(document.createElement("h2"));
    const place = this.place.appendChild(document.createElement("div"));
    place.className = "charts";
    this.charts = new Charts(place, (time) => this.told.look(time), () => this.told.charts());
    this.stage = document.createElement("div");
    this.stage.className = "view";
    this.picture = new Picture(this.stage.appendChild(document.createElement("div")));
    this.handles = new Handles(this.stage, (key, value) => this.told.change(key, value));
    this.numbers = document.createElement("div");
  }

  // Runs a request; draws as it goes. Returns the last answer, or nothing if another run has taken its place.
  async run(title, request) {
    this.title = title;
    this.head.textContent = title;
    this.request = request;
    this.loaded = null;
    this.first = null;
    this.begin = null;
    let last = null;
    const begun = performance.now();
    const isDone = await this.engine.ask(request, (answer) => {
      last = answer;
      if (answer.kind === "opened") {
        this.told.opened(answer);
      } else if (answer.kind === "begin") {
        this.begin = answer;
        this.charts.begin(answer, this.request.view);
        this.picture.show(answer);
        this.told.fit(this);
        this.charts.prepare();
      } else if (answer.kind === "part") {
        this.charts.add(answer.points);
        this.first ??= performance.now() - begun;
        this.told.progress(this, answer.at / this.begin.end, answer);
      } else if (answer.kind === "end") {
        this.charts.set(answer.points);
        this.charts.describe();
        this.first ??= performance.now() - begun;
        this.showNumbers(answer);
        this.told.progress(this, 1, answer);
      } else if (answer.kind === "error") {
        this.told.fail(`${this.title}: ${answer.message}`);
        // What is still there is of another run.
        if (!this.begin) this.empty();
      }
    });
    this.seconds = (performance.now() - begun) / 1000;
    if (isDone) this.answer = last;
    return isDone ? last : null;
  }

  // The variant that the run under way turned out to be.
  name(title, request) {
    Object.assign(this, { title, request });
    this.head.textContent = title;
  }

  // A run that cannot begin.
  refuse(title, request, message) {
    this.engine.stop();
    Object.assign(this, { title, request, begin: null, loaded: null, answer: { kind: "error", message } });
    this.head.textContent = title;
    this.empty();
  }

  // The packets around a time: the run is the same again to the bit, so they can be recorded later. Returns whether they are there.
  async watch(from, to) {
    if (this.loaded && this.loaded[0] <= from && to <= this.loaded[1]) return true;
    const margin = (to - from) / 2;
    const part = [Math.max(0, from - margin), to + margin];
    let hops = null;
    const isDone = await this.engine.ask({ ...this.request, packets: part }, (answer) => {
      if (answer.kind === "end") hops = answer.hops;
      if (answer.kind === "error") this.told.fail(answer.message);
    });
    if (!isDone || !hops) return false;
    this.loaded = part;
    this.picture.load(hops);
    return true;
  }

  showNumbers({ report, measures, hash, events }) {
    const table = document.createElement("table");
    table.className = "numbers";
    table.appendChild(document.createElement("caption")).textContent = this.title;
    const row = (name, value) => {
      const line = table.insertRow();
      const head = line.appendChild(document.createElement("th"));
      head.scope = "row";
      head.textContent = name;
      line.insertCell().textContent = value;
    };
    for (const { name, value } of measures) row(name, shownNumber(value));
    for (const flow of report.flows.slice(0, 8)) {
      row(`${flow.id}: goodput, Mbit/s`, shownNumber(flow.goodput_bps / 1e6));
      if (flow.rtt_mean_s != null) row(`${flow.id}: mean RTT, ms`, shownNumber(flow.rtt_mean_s * 1e3));
    }
    row("packets dropped on all links", shownNumber(report.links.reduce((sum, link) => sum + link.dropped_packets, 0)));
    row("events", String(events));
    row("hash of the run", hash);
    this.numbers.replaceChildren(table);
  }

  empty() {
    this.charts.clear();
    this.picture.clear();
    this.handles.fit(null);
    this.numbers.replaceChildren();
  }

  leave() {
    this.engine.stop();
    this.engine.end();
    this.charts.clear();
    [this.place, this.stage, this.numbers].forEach((element) => element.remove());
  }
}

// The curves of one side: a chart for each panel that has points, drawn by uPlot, as in the report.

const shownNumber = (value) => {
  if (value == null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(3);
  const decimals = size >= 1000 || Number.isInteger(value) ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  return value.toFixed(decimals).replace("-", "−");
};

// The columns that uPlot wants: one for the times of all curves, and one for each curve. A step holds until the next.
const columns = (curves, points) => {
  const times = [...new Set(curves.flatMap((_, index) => points[index][0]))].sort((a, b) => a - b);
  return [times, ...curves.map(({ steps }, index) => {
    const [at, values] = points[index];
    let next = 0;
    let last;
    return times.map((time) => {
      let value;
      while (next < at.length && at[next] <= time) {
        value = values[next];
        next += 1;
      }
      if (value !== undefined) last = value;
      return steps ? last : value;
    });
  })];
};

// The largest value of a panel between two times, that of a step which began before them included.
const largest = ({ points, curves }, from, to) => points.reduce((most, [times, values], index) => {
  let before = 0;
  for (let point = 0; point < times.length && times[point] <= to; point += 1) {
    if (times[point] >= from) most = Math.max(most, values[point]);
    else if (curves[index].steps) before = values[point];
  }
  return Math.max(most, before);
}, 0);

// A queue of one packet is the packet that is sent: beside a real queue it is not drawn.
const drawnCurves = ({ title, curves, points }) => {
  const all = curves.map((_, index) => index);
  if (title !== "Queue") return all;
  const waiting = all.filter((index) => points[index][1].some((value) => value > 1));
  return waiting.length > 0 ? waiting : all;
};

// Gives a panel the scale of its quantity on all sides, for the time that it shows.
const scaled = (panel) => {
  if (!panel.plot) return;
  const most = Math.max(...panel.peers().map((peer) => largest(peer, ...panel.shown)));
  const top = most > 0 ? most * 1.06 : 1;
  if (panel.top === top) return;
  panel.top = top;
  panel.plot.setScale("y", { min: 0, max: top });
};

class Charts {
  // `place` is the element that the charts go into, `look` is called with the time under the cursor when somebody clicks, and `all` gives the charts of all
  // sides: the same quantity has the same scale in each.
  constructor(place, look, all) {
    this.place = place;
    this.look = look;
    this.all = all;
    this.panels = [];
    new ResizeObserver(() => this.resize()).observe(place);
  }

  // A new run: its curves, none with points yet, and the part of it that is drawn.
  begin({ curves, panels, end }, view) {
    this.clear();
    [this.from, this.to] = view ?? [0, end];
    this.panels = panels.map(([title, unit], panel) => {
      const own = curves.map((curve, index) => ({ ...curve, index })).filter((curve) => curve.panel === panel);
      const peers = () => this.all().flatMap((charts) => charts.panels.filter((one) => one.title === title));
      return { title, unit, panel, peers, curves: own, points: own.map(() => [[], []]), plot: null, box: null };
    }).filter(({ curves: own }) => own.length > 0);
  }

  clear() {
    this.panels.forEach(({ plot }) => plot?.destroy());
    this.panels = [];
    this.place.replaceChildren();
  }

  // Points that are added to those that are there.
  add(points) {
    for (const panel of this.panels) {
      panel.curves.forEach(({ index }, own) => {
        const [times, values] = panel.points[own];
        for (let point = 0; point < points[index][0].length; point += 1) {
          times.push(points[index][0][point]);
          values.push(points[index][1][point]);
        }
      });
    }
    this.draw();
  }

  // The points of the whole run.
  set(points) {
    for (const panel of this.panels) panel.points = panel.curves.map(({ index }) => points[index]);
    this.draw();
  }

  width() {
    return Math.max(200, Math.floor(this.place.clientWidth));
  }

  // What all plots have in common. It is asked before the first is there, since each question makes the browser lay out what has changed.
  paint() {
    const numbers = new Set(this.panels.flatMap(({ curves }) => curves.map(({ colour: number }) => number % 8)));
    const strokes = new Map([...numbers].map((number) => [number, colour(`s${number}`)]));
    return { width: this.width(), quiet: colour("quiet"), rule: colour("rule"), font: `11px ${getComputedStyle(document.body).fontFamily}`, strokes };
  }

  // Panels of which something is known; one in which every value is 0 says nothing.
  draw() {
    let paint = null;
    for (const panel of this.panels) {
      const isEmpty = panel.points.every(([, values]) => values.every((value) => value === 0));
      if (isEmpty) continue;
      const drawn = drawnCurves(panel);
      const data = columns(drawn.map((index) => panel.curves[index]), drawn.map((index) => panel.points[index]));
      if (panel.plot && panel.drawn.join() === drawn.join()) {
        panel.plot.setData(data, false);
        this.showWhole(panel);
      } else {
        panel.plot?.destroy();
        panel.box?.remove();
        panel.plot = null;
        panel.drawn = drawn;
        paint ??= this.paint();
        this.plot(panel, data, paint);
      }
    }
    for (const { panels } of this.all()) panels.forEach(scaled);
  }

  plot(panel, data, { width, quiet, rule, font, strokes }) {
    const box = document.createElement("div");
    box.className = "panel";
    box.setAttribute("role", "img");
    const title = box.appendChild(document.createElement("div"));
    title.className = "title";
    const name = title.appendChild(document.createElement("span"));
    name.appendChild(document.createElement("b")).textContent = panel.title;
    name.append(` (${panel.unit})`);
    panel.box = box;
    box.style.gridRow = panel.panel + 1;
    // In the order of the panels, whichever has points first.
    const later = this.panels.slice(this.panels.indexOf(panel) + 1).find((one) => one.box?.parentNode);
    this.place.insertBefore(box, later?.box ?? null);
    const axis = { stroke: quiet, grid: { stroke: rule, width: 1 }, ticks: { show: false }, font };
    const series = panel.drawn.map((index) => panel.curves[index]).map(({ name: label, steps, colour: number }) => {
      const stroke = strokes.get(number % 8);
      const common = { label, stroke, value: (u, value) => (u.cursor.left >= 0 ? shownNumber(value) : "") };
      return steps
        ? { ...common, width: 1.4, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }
        : { ...common, width: 0, paths: () => null, points: { show: true, size: 4, fill: stroke, stroke, width: 0 } };
    });
    panel.plot = new uPlot({
      width,
      height: 150,
      padding: [8, 18, 0, 0],
      legend: { live: true, mount: (u, table) => title.append(table), markers: { width: 0, fill: (u, place) => (place > 0 ? series[place - 1].stroke : null) } },
      cursor: { sync: { key: "playground", scales: ["x", null] }, y: false, drag: { x: true, y: false, dist: 4 }, points: { size: 6, width: 0 } },
      scales: { x: { time: false, range: (u, min, max) => [min ?? this.from, max ?? this.to] }, y: { auto: false, range: (u, min, max) => [0, max ?? 1] } },
      axes: [{ ...axis, values: (u, ticks) => ticks.map((tick) => `${+tick.toPrecision(6)} s`), size: 26 }, { ...axis, size: 48, values: (u, ticks) => ticks.map((tick) => +tick.toPrecision(6)) }],
      series: [{ label: "time", value: (u, value) => (u.cursor.left >= 0 ? `${shownNumber(value)} s` : "") }, ...series],
      hooks: { setScale: [(u, key) => { if (key === "x") this.zoomed(panel, u); }], ready: [(u) => u.over.addEventListener("click", () => { if (u.cursor.left >= 0) this.look(u.posToVal(u.cursor.left, "x")); })] },
    }, data, box);
    panel.top = null;
    this.showWhole(panel);
  }

  showWhole(panel) {
    panel.shown = [this.from, this.to];
    panel.plot.setScale("x", { min: this.from, max: this.to });
  }

  zoomed(panel, { scales: { x } }) {
    panel.shown = [x.min, x.max];
    // While uPlot sets one scale, it forgets another.
    queueMicrotask(() => scaled(panel));
  }

  // What a screen reader says of each panel: the last value of each curve and its largest.
  describe() {
    for (const { box, title, unit, curves, points } of this.panels) {
      const told = curves.map(({ name }, index) => {
        const values = points[index][1];
        return values.length > 0 ? `${name}: at most ${shownNumber(Math.max(...values))}, at the end ${shownNumber(values.at(-1))}` : null;
      });
      box?.setAttribute("aria-label", `${title} in ${unit}. ${told.filter(Boolean).join("; ")}.`);
    }
  }

  resize() {
    for (const { plot } of this.panels) if (plot && plot.width !== this.width()) plot.setSize({ width: this.width(), height: plot.height });
  }

  // After a change of the theme.
  redraw() {
    const { panels } = this;
    panels.forEach((panel) => {
      panel.plot?.destroy();
      panel.box?.remove();
      panel.plot = null;
      panel.box = null;
    });
    this.draw();
    this.describe();
  }
}

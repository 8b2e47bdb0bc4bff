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
  const all = Float64Array.from(curves.flatMap((_, index) => points[index][0])).sort();
  const times = Array.from(all.filter((time, place) => place === 0 || time !== all[place - 1]));
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

// The colours and the font of all plots, until the theme changes: each question makes the browser compute its styles.
let inks = null;

class Charts {
  // `place` is the element that the charts go into, `look` is called with the time under the cursor when somebody clicks, and `all` gives the charts of all
  // sides: the same quantity has the same scale in each.
  constructor(place, look, all) {
    this.place = place;
    this.look = look;
    this.all = all;
    this.panels = [];
    this.laid = null;
    new ResizeObserver(() => this.resize()).observe(place);
  }

  // A new run: its curves, none with points yet, and the part of it that is drawn.
  begin({ curves, panels, end }, view) {
    this.clear();
    [this.from, this.to] = view ?? [0, end];
    this.panels = panels.map(([title, unit], panel) => {
      const own = curves.map((curve, index) => ({ ...curve, index })).filter((curve) => curve.panel === panel);
      const peers = () => this.all().flatMap((charts) => charts.panels.filter((one) => one.title === title));
      return { title, unit, panel, peers, curves: own, points: own.map(() => [[], []]), plot: null, box: null, ready: null };
    }).filter(({ curves: own }) => own.length > 0);
  }

  clear() {
    this.panels.forEach(({ plot, ready }) => [plot, ready?.plot].forEach((one) => one?.destroy()));
    this.panels = [];
    this.place.replaceChildren();
  }

  // Makes the plots of panels while the simulator works and the page is at leisure: then points need only be drawn. A panel without any is never shown, and few runs
  // have events.
  prepare() {
    const paint = this.paint();
    for (const panel of this.panels.filter(({ curves }) => curves.some(({ steps }) => steps))) {
      const all = panel.curves.map((_, index) => index);
      panel.ready = this.made(panel, all, [[], ...all.map(() => [])], paint);
    }
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

  // The points of the whole run: a panel that has none now will have none.
  set(points) {
    for (const panel of this.panels) panel.points = panel.curves.map(({ index }) => points[index]);
    this.draw();
    for (const panel of this.panels) {
      panel.ready?.plot.destroy();
      panel.ready = null;
    }
  }

  width() {
    return Math.max(200, Math.floor(this.place.clientWidth));
  }

  // What all plots have in common. A question for the width makes the browser lay out what has changed, so it is kept until the browser tells another.
  paint() {
    this.laid ??= this.width();
    inks ??= { quiet: colour("quiet"), rule: colour("rule"), font: `11px ${getComputedStyle(document.body).fontFamily}`, strokes: Array.from({ length: 8 }, (_, number) => colour(`s${number}`)) };
    return { width: this.laid, ...inks };
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
        panel.drawn = drawn;
        const { ready } = panel;
        panel.ready = null;
        if (ready && !panel.plot) {
          for (let index = panel.curves.length - 1; index >= 0; index -= 1) if (!drawn.includes(index)) ready.plot.delSeries(index + 1);
          ready.plot.setData(data, false);
          Object.assign(panel, ready);
        } else {
          ready?.plot.destroy();
          paint ??= this.paint();
          Object.assign(panel, this.made(panel, drawn, data, paint));
        }
        // In the order of the panels, whichever has points first.
        const later = this.panels.slice(this.panels.indexOf(panel) + 1).find((one) => one.box?.parentNode);
        this.place.insertBefore(panel.box, later?.box ?? null);
        panel.top = null;
        this.showWhole(panel);
      }
    }
    for (const { panels } of this.all()) panels.forEach(scaled);
  }

  // The plot of curves of a panel, and the box that it is in, which is not in the page yet.
  made(panel, drawn, data, { width, quiet, rule, font, strokes }) {
    const box = document.createElement("div");
    box.className = "panel";
    box.setAttribute("role", "img");
    const title = box.appendChild(document.createElement("div"));
    title.className = "title";
    const name = title.appendChild(document.createElement("span"));
    name.appendChild(document.createElement("b")).textContent = panel.title;
    name.append(` (${panel.unit})`);
    box.style.gridRow = panel.panel + 1;
    const axis = { stroke: quiet, grid: { stroke: rule, width: 1 }, ticks: { show: false }, font };
    const series = drawn.map((index) => panel.curves[index]).map(({ name: label, steps, colour: number }) => {
      const stroke = strokes[number % 8];
      const common = { label, stroke, value: (u, value) => (u.cursor.left >= 0 ? shownNumber(value) : "") };
      return steps
        ? { ...common, width: 1.4, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }
        : { ...common, width: 0, paths: () => null, points: { show: true, size: 4, fill: stroke, stroke, width: 0 } };
    });
    const plot = new uPlot({
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
    return { plot, box };
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
    this.laid = this.width();
    const plots = this.panels.flatMap(({ plot, ready }) => [plot, ready?.plot]).filter(Boolean);
    for (const plot of plots) if (plot.width !== this.laid) plot.setSize({ width: this.laid, height: plot.height });
  }

  // After a change of the theme.
  redraw() {
    const { panels } = this;
    inks = null;
    panels.forEach((panel) => {
      [panel.plot, panel.ready?.plot].forEach((plot) => plot?.destroy());
      panel.box?.remove();
      Object.assign(panel, { plot: null, box: null, ready: null });
    });
    this.draw();
    this.describe();
  }
}

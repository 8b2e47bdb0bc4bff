// The report's charts and its buttons. Without this script everything but the curves is there.

(() => {
  const root = document.documentElement;
  const isPrinting = () => root.classList.contains("printing");

  // Numbers as tables show them: four digits, no exponents in between.
  const shown = (value) => {
    if (value == null || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(3);
    const decimals = size >= 1000 || Number.isInteger(value) ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
    return value.toFixed(decimals).replace("-", "−");
  };

  // Decimals that tell two ticks of the axis of time apart.
  const seconds = (tick) => Math.max(0, Math.min(9, Math.ceil(-Math.log10(tick) - 1e-9)));

  // The columns that uPlot wants: one for the times of all series, and one for each series. A step holds until the next; an
  // event stands alone. Points of one series at one time stay apart.
  const table = (figure, panel) => {
    const rows = new Map();
    const row = (tick, nth) => {
      const key = tick * 65536 + nth;
      if (!rows.has(key)) rows.set(key, new Array(panel.series.length));
      return rows.get(key);
    };
    row(0, 0);
    row(figure.ticks, 0);
    panel.series.forEach((series, index) => {
      let tick = 0;
      let nth = 0;
      series.t.forEach((step, point) => {
        tick += step;
        nth = step === 0 && point > 0 ? Math.min(nth + 1, 65535) : 0;
        row(tick, nth)[index] = series.v[point];
      });
    });
    const keys = [...rows.keys()].sort((a, b) => a - b);
    const columns = [keys.map((key) => figure.from + Math.floor(key / 65536) * figure.tick)];
    panel.series.forEach((series, index) => {
      let last;
      columns.push(keys.map((key) => {
        const value = rows.get(key)[index];
        if (series.style !== "steps") return value;
        if (value !== undefined) last = value;
        return last;
      }));
    });
    return columns;
  };

  // What the legend says at a time: of steps the value that holds, of events the one next to the cursor.
  const NEAR = 8; // pixels
  const indexAt = (figure, panel) => (u, place, nearest) => {
    if (place === 0 || u.cursor.left < 0) return nearest;
    const time = u.posToVal(u.cursor.left, "x");
    const times = u.data[0];
    const values = u.data[place];
    if (panel.series[place - 1].style === "steps") {
      let index = nearest;
      while (index > 0 && times[index] > time) index -= 1;
      while (index + 1 < times.length && times[index + 1] <= time) index += 1;
      return values[index] == null ? null : index;
    }
    const distance = (index) => Math.abs(u.valToPos(times[index], "x") - u.cursor.left);
    let best = null;
    for (const way of [-1, 1]) {
      for (let index = nearest; index >= 0 && index < times.length && distance(index) <= NEAR; index += way) {
        if (values[index] != null && (best === null || distance(index) < distance(best))) best = index;
      }
    }
    return best;
  };

  class Chart {
    constructor(element, number) {
      this.element = element;
      this.data = JSON.parse(element.querySelector("script.data").textContent);
      this.key = `figure-${number}`;
      this.plots = [];
      this.isDrawn = false;
      this.reset = element.querySelector("button.reset");
      this.reset.addEventListener("click", () => this.zoom(this.whole()));
      const panels = element.querySelector(".panels");
      this.panels = this.data.panels.map((panel) => {
        const box = panels.appendChild(document.createElement("div"));
        box.className = "panel";
        box.tabIndex = 0;
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", `${panel.title}, ${panel.unit}. Arrow keys move, plus and minus zoom, 0 shows the whole time.`);
        box.addEventListener("keydown", (event) => this.press(event));
        const title = box.appendChild(document.createElement("div"));
        title.className = "title";
        const name = title.appendChild(document.createElement("span"));
        name.appendChild(document.createElement("b")).textContent = panel.title;
        if (panel.unit) name.append(` (${panel.unit})`);
        return { panel, box, title };
      });
    }

    whole() {
      return { min: this.data.from, max: this.data.from + this.data.ticks * this.data.tick };
    }

    width() {
      return Math.max(200, Math.floor(this.element.querySelector(".panels").clientWidth));
    }

    draw() {
      const shownTime = this.plots.length > 0 ? this.time() : null;
      this.plots.forEach((plot) => plot.destroy());
      this.plots = this.panels.map((one, index) => this.plot(one, index));
      this.isDrawn = true;
      if (shownTime) this.zoom(shownTime);
    }

    plot({ panel, box, title }, index) {
      const isLast = index === this.panels.length - 1;
      const quiet = colour("quiet");
      const grid = { stroke: colour("rule"), width: 1 };
      const font = `11px ${getComputedStyle(document.body).fontFamily}`;
      const decimals = seconds(this.data.tick);
      const series = panel.series.map(({ name, style, colour: number }) => {
        const stroke = colour(`s${number}`);
        const common = { label: name || panel.title, stroke, value: (u, value) => (u.cursor.left >= 0 ? shown(value) : "") };
        return style === "steps"
          ? { ...common, width: 1.4, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }
          : { ...common, class: "points", width: 0, paths: () => null, points: { show: true, size: 6, fill: stroke, stroke, width: 0, filter: null } };
      });
      const options = {
        width: this.width(),
        height: isLast ? 180 : 150,
        padding: [8, 10, isLast ? 0 : 6, 0],
        legend: { live: true, mount: (u, table) => title.append(table), markers: { width: 0, fill: (u, place) => (place > 0 ? series[place - 1].stroke : null) } },
        cursor: {
          sync: { key: this.key, scales: ["x", null] },
          y: false,
          drag: { x: true, y: false, dist: 4 },
          dataIdx: indexAt(this.data, panel),
          points: { size: 6, width: 0, fill: (u, place) => series[place - 1].stroke },
        },
        scales: { x: { time: false } },
        axes: [
          {
            stroke: quiet, grid, ticks: { ...grid, size: 4, show: isLast }, font, size: isLast ? 20 : 6, gap: 3,
            label: isLast ? "time (s)" : undefined, labelFont: font, labelSize: 16, labelGap: 0,
            values: isLast ? (u, splits) => splits.map((split) => String(+split.toFixed(decimals)).replace("-", "−")) : () => [],
          },
          { stroke: quiet, grid, ticks: { ...grid, size: 4 }, font, size: 56, gap: 3, space: 26, values: (u, splits) => splits.map((split) => axisNumber(split)) },
        ],
        series: [{ label: " ", value: (u) => (u.cursor.left >= 0 ? `${u.posToVal(u.cursor.left, "x").toFixed(decimals)} s` : "") }, ...series],
        hooks: { setScale: [(u, scale) => scale === "x" && this.follow(u)] },
      };
      const plot = new uPlot(options, table(this.data, panel), box);
      title.querySelectorAll(".u-series th").forEach((head) => {
        head.tabIndex = 0;
        head.setAttribute("role", "button");
        head.addEventListener("keydown", (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            event.stopPropagation();
            head.click();
          }
        });
      });
      return plot;
    }

    time() {
      const { min, max } = this.plots[0].scales.x;
      return { min, max };
    }

    // All panels show the same time.
    follow(source) {
      if (this.isFollowing) return;
      const { min, max } = source.scales.x;
      if (min == null) return;
      this.isFollowing = true;
      for (const plot of this.plots) {
        if (plot !== source && (plot.scales.x.min !== min || plot.scales.x.max !== max)) plot.setScale("x", { min, max });
      }
      this.isFollowing = false;
      const whole = this.whole();
      this.reset.hidden = min <= whole.min + this.data.tick / 2 && max >= whole.max - this.data.tick / 2;
    }

    zoom({ min, max }) {
      const whole = this.whole();
      const span = Math.min(Math.max(max - min, this.data.tick * 10), whole.max - whole.min);
      const begin = Math.min(Math.max(min, whole.min), whole.max - span);
      this.plots.forEach((plot) => plot.setScale("x", { min: begin, max: begin + span }));
    }

    press(event) {
      if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
      const { min, max } = this.time();
      const span = max - min;
      const moves = {
        ArrowLeft: () => ({ min: min - span / 8, max: max - span / 8 }),
        ArrowRight: () => ({ min: min + span / 8, max: max + span / 8 }),
        "+": () => ({ min: min + span / 6, max: max - span / 6 }),
        "=": () => ({ min: min + span / 6, max: max - span / 6 }),
        "-": () => ({ min: min - span / 4, max: max + span / 4 }),
        0: () => this.whole(),
        Escape: () => this.whole(),
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      this.zoom(moves[event.key]());
    }

    resize(width) {
      this.plots.forEach((plot) => plot.setSize({ width, height: plot.height }));
    }
  }

  const axisNumber = (value) => {
    const size = Math.abs(value);
    if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential().replace("e+", "e").replace("-", "−");
    return String(+value.toPrecision(6)).replace("-", "−");
  };

  const charts = [...document.querySelectorAll("figure.chart")].map((element, number) => new Chart(element, number));

  // Charts that come near are drawn first, then the others one by one, so that a report of two hundred is there at once. Beyond
  // some number they wait until they come near: each canvas holds megabytes.
  const UNSEEN_MAX = 48;
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const chart = charts.find((one) => one.element === entry.target);
      if (entry.isIntersecting && !chart.isDrawn) chart.draw();
    }
  }, { rootMargin: "800px" });
  const size = new ResizeObserver((entries) => {
    if (isPrinting()) return;
    for (const entry of entries) {
      const chart = charts.find((one) => one.element === entry.target);
      if (chart.isDrawn && chart.plots.some((plot) => plot.width !== chart.width())) chart.resize(chart.width());
    }
  });
  const drawNext = () => {
    const next = charts.slice(0, UNSEEN_MAX).find((chart) => !chart.isDrawn);
    if (!next) return;
    next.draw();
    setTimeout(drawNext);
  };
  document.fonts.ready.then(() => {
    charts.forEach((chart) => {
      near.observe(chart.element);
      size.observe(chart.element);
    });
    setTimeout(drawNext, 50);
  });

  const redraw = () => charts.filter((chart) => chart.isDrawn).forEach((chart) => chart.draw());

  setUpTheme(redraw);

  // Paper is white, and as wide as a page.
  const PAPER = 660; // pixels: A4 less its margins
  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    root.classList.add("printing");
    charts.forEach((chart) => {
      chart.draw();
      chart.resize(PAPER);
    });
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    charts.forEach((chart) => chart.draw());
  });

  // A thousand squares are one stop of the tab key, and arrow keys go from one to another.
  const cells = [...document.querySelectorAll(".matrix a.cell")];
  const stop = (cell) => cells.forEach((other) => { other.tabIndex = other === cell ? 0 : -1; });
  const middle = (cell) => {
    const { left, right, top, bottom } = cell.getBoundingClientRect();
    return { x: (left + right) / 2, y: (top + bottom) / 2 };
  };
  // The nearest square of the next line above or below.
  const beyond = (cell, way) => {
    const from = middle(cell);
    let best = null;
    for (const other of cells) {
      const { x, y } = middle(other);
      const rows = (y - from.y) * way;
      if (rows < 2) continue;
      const place = { other, rows, columns: Math.abs(x - from.x) };
      if (best === null || rows < best.rows - 1 || (rows < best.rows + 1 && place.columns < best.columns)) best = place;
    }
    return best?.other;
  };
  if (cells.length > 0) {
    stop(cells[0]);
    const matrix = document.querySelector(".matrix");
    matrix.addEventListener("focusin", (event) => { if (cells.includes(event.target)) stop(event.target); });
    matrix.addEventListener("keydown", (event) => {
      const at = cells.indexOf(event.target);
      if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      const moves = {
        ArrowLeft: () => cells[at - 1],
        ArrowRight: () => cells[at + 1],
        ArrowUp: () => beyond(cells[at], -1),
        ArrowDown: () => beyond(cells[at], 1),
        Home: () => cells[0],
        End: () => cells[cells.length - 1],
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]()?.focus();
    });
  }

  for (const copy of document.querySelectorAll("button.copy")) {
    copy.addEventListener("click", async () => {
      const done = await navigator.clipboard.writeText(copy.dataset.copy).then(() => true, () => false);
      copy.textContent = done ? "Copied" : "Select and copy";
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    });
  }

  // For tests and for those who look at the page from its console.
  globalThis.anabranchCharts = charts;
})();

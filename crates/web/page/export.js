// What can be taken along: the scenario, the numbers of the curves, and pictures.

const save = (name, blob) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

// A field of a CSV file. A name that a spreadsheet would take for a formula gets an apostrophe.
const field = (text) => {
  const plain = /^[=+\-@]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};

// One row for each point: the side, the panel, the curve, the time and the value.
const csvOf = (sides) => {
  const rows = [["law", "quantity", "unit", "curve", "time_s", "value"]];
  for (const { title, charts } of sides) {
    for (const panel of charts.panels) {
      panel.curves.forEach(({ name }, index) => {
        const [times, values] = panel.points[index];
        times.forEach((time, point) => rows.push([title, panel.title, panel.unit, name, String(time), String(values[point])]));
      });
    }
  }
  return `${rows.map((row) => row.map(field).join(",")).join("\n")}\n`;
};

// The panels that are drawn, each with its row: the same quantity is in the same row on all sides.
const drawnPanels = (sides) => {
  const drawn = sides.flatMap(({ title, charts }, side) => charts.panels.filter(({ plot }) => plot).map((panel) => ({ ...panel, side, law: title })));
  const rows = [...new Set(drawn.map(({ panel }) => panel))].sort((a, b) => a - b);
  return drawn.map((panel) => ({ ...panel, row: rows.indexOf(panel.panel), legend: panel.drawn.map((index) => panel.curves[index]) }));
};

// The charts as they are on the screen, with their titles, on one canvas.
const pngOf = (sides) => new Promise((resolve) => {
  const panels = drawnPanels(sides);
  const ratio = devicePixelRatio;
  const width = Math.max(...panels.map(({ plot }) => plot.ctx.canvas.width), 1);
  const height = Math.max(...panels.map(({ plot }) => plot.ctx.canvas.height), 1) + 22 * ratio;
  const canvas = document.createElement("canvas");
  canvas.width = width * sides.length;
  canvas.height = height * Math.max(1, ...panels.map(({ row }) => row + 1));
  const ctx = canvas.getContext("2d");
  ctx.fillStyle = colour("paper");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.font = `${12 * ratio}px sans-serif`;
  for (const { plot, side, row, title, unit, law, legend } of panels) {
    let left = side * width + 8 * ratio;
    const write = (text, ink) => {
      ctx.fillStyle = colour(ink);
      ctx.fillText(text, left, row * height + 15 * ratio);
      left += ctx.measureText(`${text}  `).width;
    };
    write(`${law}: ${title} (${unit})`, "ink");
    legend.forEach(({ name, colour: number }) => write(name, `s${number % 8}`));
    ctx.drawImage(plot.ctx.canvas, side * width, row * height + 20 * ratio);
  }
  canvas.toBlob(resolve, "image/png");
});

// The same as lines of SVG. Text is set as text, so that no name becomes markup.
const svgOf = (sides) => {
  const [width, height, margin] = [560, 150, 44];
  const svg = document.createElementNS(SVG, "svg");
  const add = (name, attributes, text) => {
    const element = svg.appendChild(document.createElementNS(SVG, name));
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    if (text !== undefined) element.textContent = text;
    return element;
  };
  let rows = 0;
  add("rect", { width: "100%", height: "100%", fill: colour("paper") });
  for (const { side, row, title, unit, law, legend, drawn, points, plot } of drawnPanels(sides)) {
    rows = Math.max(rows, row + 1);
    const [left, top] = [side * (width + margin) + margin, row * (height + 40) + 24];
    const { min: x0, max: x1 } = plot.scales.x;
    const { min: y0, max: y1 } = plot.scales.y;
    const x = (time) => (left + (time - x0) / (x1 - x0) * (width - margin)).toFixed(1);
    const y = (value) => (top + height - (value - y0) / (y1 - y0) * height).toFixed(1);
    const text = { "font-family": "sans-serif", "font-size": 11, fill: colour("ink") };
    const head = add("text", { ...text, x: left, y: top - 8 }, `${law}: ${title} (${unit})`);
    for (const { name, colour: number } of legend) {
      const entry = head.appendChild(document.createElementNS(SVG, "tspan"));
      entry.setAttribute("dx", 8);
      entry.setAttribute("fill", colour(`s${number % 8}`));
      entry.textContent = name;
    }
    add("text", { ...text, x: left - 6, y: top + 8, "text-anchor": "end" }, shownNumber(y1));
    add("text", { ...text, x: left, y: top + height + 13 }, `${shownNumber(x0)} s to ${shownNumber(x1)} s`);
    add("path", { d: `M${left} ${top}v${height}h${width - margin}`, fill: "none", stroke: colour("faint") });
    legend.forEach(({ steps, colour: number }, index) => {
      const [times, values] = points[drawn[index]];
      const d = times.map((time, point) => (point === 0 ? `M${x(time)} ${y(values[0])}` : steps ? `H${x(time)}V${y(values[point])}` : `M${x(time)} ${y(values[point])}h.1`)).join("");
      if (d) add("path", { d, fill: "none", stroke: colour(`s${number % 8}`), "stroke-width": steps ? 1.3 : 3, "stroke-linecap": "round" });
    });
  }
  svg.setAttribute("viewBox", `0 0 ${sides.length * (width + margin) + margin} ${rows * (height + 40) + 20}`);
  svg.setAttribute("xmlns", SVG);
  return new XMLSerializer().serializeToString(svg);
};

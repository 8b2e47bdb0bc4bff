// Handles in the picture: the path's rate, delay and queue are dragged there, or moved by the arrow keys, in step with their sliders.

// A control's value as its slider has it: over the logarithm where a quantity spans decades.
const toSlider = (one, value) => (one.scale === "log" ? Math.log10(value) : value);
const fromSlider = (one, value) => checked(one, one.scale === "log" ? +(10 ** value).toPrecision(2) : value);
const shownValue = (one, value) => `${rounded(value)} ${one.unit ?? ""}`.trim();

// The next value of a control upwards or downwards; the last one at its end.
const nudged = (one, value, direction) => {
  for (let steps = 1; steps <= 100; steps += 1) {
    const next = fromSlider(one, toSlider(one, value) + direction * steps * (one.scale === "log" ? 0.005 : one.step));
    if (next !== value) return next;
  }
  return value;
};

// The direction and the number of steps of a key; nothing for another key.
const KEYS = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 };
const moved = (one, value, key) => {
  if (key === "Home") return one.least;
  if (key === "End") return one.most;
  let next = value;
  for (let step = 0; step < Math.abs(KEYS[key] ?? 0); step += 1) next = nudged(one, next, Math.sign(KEYS[key]));
  return key in KEYS ? next : null;
};

// A whole range is dragged over so many pixels.
const RANGE_PX = 260;

// The handles: what each moves, and its place from the begin and the middle of the line of the path. In a picture of several rows there is room below the
// line, and other links beside it.
const HANDLES = [
  { key: "rate", name: "Rate of the path", isUpright: true, place: ({ middle, y }) => [middle, y - 21] },
  { key: "delay", name: "Delay of the path", place: ({ middle, y, isTall }) => (isTall ? [middle, y + 25] : [middle + 22, y + 28]) },
  { key: "size", name: "Size of the queue", place: ({ begin, middle, y, isTall }) => (isTall ? [middle, y + 52] : [begin - 14, y + 29]) },
];

// The most that handles are larger than the picture, so that a finger finds them where it is small.
const HANDLE_SCALE_MAX = 1.45;

class Handles {
  // `place` is the element of the picture, `change` is called with the key of a control and its new value.
  constructor(place, change) {
    this.change = change;
    this.values = {};
    this.svg = place.appendChild(document.createElementNS(SVG, "svg"));
    this.svg.setAttribute("class", "handles");
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", "The path, to be changed");
    this.svg.style.display = "none";
    this.all = HANDLES.map((handle) => this.make(handle));
    new ResizeObserver(() => this.put()).observe(place);
  }

  make({ key, name, isUpright, place }) {
    const one = control(key);
    const group = this.svg.appendChild(document.createElementNS(SVG, "g"));
    const add = (kind, name) => {
      const element = group.appendChild(document.createElementNS(SVG, kind));
      element.setAttribute("class", name);
      return element;
    };
    // A finger needs more room than is seen.
    const [room, pill] = [add("rect", "room"), add("rect", "pill")];
    const text = add("text", "value");
    const attributes = { class: `handle ${isUpright ? "upright" : "level"}`, role: "slider", tabindex: 0, "data-key": key, "aria-label": name, "aria-orientation": isUpright ? "vertical" : "horizontal", "aria-valuemin": one.least, "aria-valuemax": one.most };
    Object.entries(attributes).forEach(([attribute, value]) => group.setAttribute(attribute, value));
    let drag = null;
    group.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      group.setPointerCapture(event.pointerId);
      drag = { x: event.clientX, y: event.clientY, from: toSlider(one, this.values[key]) };
      event.preventDefault();
      group.focus({ preventScroll: true });
    });
    group.addEventListener("pointermove", ({ clientX, clientY }) => {
      if (!drag) return;
      const way = isUpright ? drag.y - clientY : clientX - drag.x;
      const span = toSlider(one, one.most) - toSlider(one, one.least);
      const value = fromSlider(one, drag.from + (way / RANGE_PX) * span);
      if (value !== this.values[key]) this.change(key, value);
    });
    ["pointerup", "pointercancel", "lostpointercapture"].forEach((kind) => group.addEventListener(kind, () => { drag = null; }));
    group.addEventListener("keydown", (event) => {
      const value = event.ctrlKey || event.altKey || event.metaKey ? null : moved(one, this.values[key], event.key);
      if (value === null) return;
      event.preventDefault();
      if (value !== this.values[key]) this.change(key, value);
    });
    return { one, group, room, pill, text, place, sign: isUpright ? "↕" : "↔" };
  }

  // Shows the values of a scene.
  show(scene) {
    this.values = scene;
    for (const { one, group, room, pill, text, sign } of this.all) {
      const shown = shownValue(one, scene[one.key]);
      text.textContent = `${sign} ${one.key === "size" ? `queue ${rounded(scene.size)}` : shown}`;
      group.setAttribute("aria-valuenow", scene[one.key]);
      group.setAttribute("aria-valuetext", shown);
      const width = 6.3 * text.textContent.length + 14;
      const box = (element, wide, high) => Object.entries({ x: -wide / 2, y: -high / 2, width: wide, height: high, rx: 8 }).forEach(([attribute, value]) => element.setAttribute(attribute, value));
      box(pill, width, 17);
      box(room, width, 26);
    }
    this.thicken();
  }

  // Puts the handles onto a picture, or takes them away where there is none that the sliders make.
  fit(picture, isOfSliders) {
    this.link = isOfSliders ? picture?.querySelector('path.link[data-link="path"]') : null;
    this.svg.style.display = this.link ? "" : "none";
    if (!this.link) return;
    for (const attribute of ["viewBox", "width", "height"]) this.svg.setAttribute(attribute, picture.getAttribute(attribute));
    this.svg.style.maxWidth = picture.style.maxWidth;
    const [first, last] = [0, this.link.getTotalLength()].map((length) => this.link.getPointAtLength(length));
    const where = { begin: Math.min(first.x, last.x), middle: (first.x + last.x) / 2, y: first.y, isTall: Number(picture.getAttribute("height")) > 100 };
    this.where = where;
    this.put();
    // The handles say what the picture says there.
    for (const text of picture.querySelectorAll("text.rate, text.delay")) {
      if (Math.abs(text.getAttribute("x") - where.middle) < 1 && Math.abs(text.getAttribute("y") - where.y) < 20) text.style.display = "none";
    }
    this.thicken();
  }

  // Puts each handle to its place, as large as it can be read.
  put() {
    if (!this.link) return;
    const shrunk = Number(this.svg.getAttribute("width")) / Math.max(1, this.svg.getBoundingClientRect().width);
    const scale = Math.min(HANDLE_SCALE_MAX, Math.max(1, shrunk));
    for (const { group, place } of this.all) group.setAttribute("transform", `translate(${place(this.where).join(" ")}) scale(${scale.toFixed(3)})`);
  }

  // A faster link is drawn thicker.
  thicken() {
    const { least, most } = control("rate");
    if (this.link && this.values.rate) this.link.style.strokeWidth = `${(1.5 + 5 * Math.log(this.values.rate / least) / Math.log(most / least)).toFixed(2)}px`;
  }
}

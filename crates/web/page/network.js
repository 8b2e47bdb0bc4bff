// The picture of the network, and the packets that move on it.

const SVG = "http://www.w3.org/2000/svg";
const PACKETS_SHOWN = 400;

class Picture {
  constructor(place) {
    this.place = place;
    this.hops = [];
  }

  // The drawing comes from the simulator, which escapes every name in it. It is parsed as XML, so nothing in it is run.
  show({ network, links, flows }) {
    this.links = links;
    this.flows = flows;
    this.hops = [];
    this.ways = null;
    if (!network) {
      this.clear();
      this.place.textContent = "The network is too large for a picture.";
      return;
    }
    const parsed = new DOMParser().parseFromString(network.replace("<svg", `<svg xmlns="${SVG}"`), "image/svg+xml");
    this.svg = document.importNode(parsed.documentElement, true);
    // A small network is not blown up.
    this.svg.style.maxWidth = `${1.3 * Number(this.svg.getAttribute("width"))}px`;
    this.place.replaceChildren(this.svg);
    this.layer = this.svg.appendChild(document.createElementNS(SVG, "g"));
  }

  // The path of each direction of a link, and whether packets go from its end to its begin. It is asked when packets are drawn: the browser lays out the page to
  // tell lengths.
  found() {
    const paths = new Map([...this.svg.querySelectorAll("path.link")].map((path) => [path.dataset.link, path]));
    return this.links.map((id) => {
      const isReverse = id.endsWith(".reverse");
      const path = paths.get(id) ?? paths.get(id.replace(/\.reverse$/, ""));
      if (!path) return null;
      const from = isReverse && path.dataset.link !== id ? path.dataset.to : path.dataset.from;
      return { path, length: path.getTotalLength(), isBackward: from !== path.dataset.begin, side: isReverse ? 1 : -1 };
    });
  }

  clear() {
    this.svg = null;
    this.hops = [];
    this.place.replaceChildren();
  }

  // The packets of the part of the run from `from` to `to`.
  load(hops) {
    this.hops = hops;
  }

  // Draws the packets as they are at a time: on the wire by their places, in a queue one beside the other at its begin.
  draw(time) {
    if (!this.svg) return;
    this.ways ??= this.found();
    const waiting = new Map();
    const dots = [];
    for (const [link, flow, isAnswer, came, left, gone, isLost] of this.hops) {
      const way = this.ways[link];
      if (!way || came > time || dots.length >= PACKETS_SHOWN) continue;
      const end = gone ?? Infinity;
      // What is lost stays for a moment, so that it is seen.
      if (isLost ? time > end + this.linger : time > end) continue;
      let part = 0;
      let row = 0;
      if (isLost) {
        part = left === null ? 0.04 : 0.5;
        row = 3;
      } else if (left === null || time < left) {
        row = waiting.get(link) ?? 0;
        waiting.set(link, row + 1);
        row += 1;
      } else {
        part = Number.isFinite(end) && end > left ? (time - left) / (end - left) : 0.5;
      }
      dots.push({ way, part, row, flow, isAnswer, isLost });
    }
    this.layer.replaceChildren(...dots.map((dot) => this.dot(dot)));
  }

  dot({ way, part, row, flow, isAnswer, isLost }) {
    const along = (way.isBackward ? 1 - part : part) * way.length;
    const { x, y } = way.path.getPointAtLength(along);
    const shift = isLost ? 12 : way.side * 3;
    const circle = document.createElementNS(SVG, "circle");
    circle.setAttribute("cx", x + (row > 0 && !isLost ? (way.isBackward ? -1 : 1) * (16 + 3.2 * (row % 24)) : 0));
    circle.setAttribute("cy", y + shift + way.side * (row > 0 && !isLost ? 4 * Math.floor(row / 24) : 0));
    circle.setAttribute("r", isAnswer ? 1.8 : 3);
    circle.setAttribute("class", `packet${isAnswer ? " answer" : ""}${isLost ? " lost" : ""}`);
    if (!isLost) circle.style.fill = `var(--s${flow % 8})`;
    return circle;
  }
}

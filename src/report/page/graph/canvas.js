// canvas.js — draws a laid out graph as SVG, and moves and scales it.

import { select } from "d3-selection";
import { curveBasis, line } from "d3-shape";
import { zoom, zoomIdentity, zoomTransform } from "d3-zoom";
import { svg } from "../dom.js";
import { shorten } from "../format.js";
import { linesOf, mostCharacters } from "./tree.js";

const path = line().curve(curveBasis);
const margin = 24;
// Scales at which the text in boxes can be read, and is with ease.
const readable = 0.55;
const comfortable = 0.9;

export class Canvas {
  #layer = svg("g", { class: "layer" });
  #grounds = svg("g", { class: "grounds", "aria-hidden": "true" }); // of frames, under the lines that run through them
  #lines = svg("g", { class: "lines", "aria-hidden": "true" });
  #boxes = svg("g", { class: "boxes" });
  #elements = new Map();
  #places = new Map();
  #marks = []; // boxes and lines, with the rectangle that each takes and whether it is shown
  #zoom;
  #isToFit = false; // once there is room: it was asked to while nothing showed it
  #drawing = { width: 0, height: 0, boxes: [], lines: [] };

  // press(key) is called for a box or the title of a frame, toggle(key) to open or close a group.
  constructor(element, { press, toggle }) {
    this.element = element;
    this.press = press;
    this.toggle = toggle;
    const arrow = svg(
      "marker",
      {
        id: "arrow",
        viewBox: "0 0 8 8",
        refX: 7,
        refY: 4,
        markerWidth: 9,
        markerHeight: 9,
        markerUnits: "userSpaceOnUse",
        orient: "auto",
      },
      svg("path", { d: "M0,1L7,4L0,7z" }),
    );
    element.append(svg("defs", {}, arrow), this.#layer);
    this.#layer.append(this.#grounds, this.#lines, this.#boxes);
    this.#zoom = zoom()
      .scaleExtent([0.02, 3])
      .on("zoom", () => this.#apply());
    select(element).call(this.#zoom).on("dblclick.zoom", null);
    new ResizeObserver(() => (this.#isToFit ? this.fit() : this.#cull(this.#transform()))).observe(element);
  }

  #transform() {
    return zoomTransform(this.element);
  }

  #apply() {
    const transform = this.#transform();
    this.#layer.setAttribute("transform", transform.toString());
    this.element.classList.toggle("far", transform.k < 0.35);
    this.#cull(transform);
  }

  // Leaves out what is outside the view: thousands of boxes would be slow to move.
  #cull({ k, x, y }) {
    const [width, height] = this.#viewport();
    const [left, top, right, bottom] = [-x / k, -y / k, (width - x) / k, (height - y) / k];
    for (const mark of this.#marks) {
      const isSeen = mark.left <= right && mark.right >= left && mark.top <= bottom && mark.bottom >= top;
      if (isSeen === mark.isSeen) continue;
      mark.isSeen = isSeen;
      mark.element.style.display = isSeen ? "" : "none";
    }
  }

  // look(item, isOpen) gives the classes, the hue and the label of a box.
  draw(drawing, items, look) {
    this.#drawing = drawing;
    this.#places = new Map(drawing.boxes.map((box) => [box.key, box]));
    for (const [key, element] of this.#elements)
      if (!this.#places.has(key)) {
        element.remove();
        this.#elements.delete(key);
      }
    this.#grounds.replaceChildren(
      ...drawing.boxes
        .filter((box) => box.open)
        .map(({ x, y, width, height }) => svg("rect", { x, y, width, height, rx: 9 })),
    );
    // Frames before what is in them, as the layout gives them.
    this.#boxes.append(...drawing.boxes.map((box) => this.#box(box, items.get(box.key), look)));
    this.#lines.replaceChildren(...drawing.lines.map((segment) => this.#line(segment)));
    this.#marks = [
      ...drawing.boxes.map((box) => this.#markOfBox(box)),
      ...drawing.lines.map((segment, i) => this.#markOfLine(segment, i)),
    ];
    this.#cull(this.#transform());
  }

  #markOfBox({ key, x, y, width, height }) {
    return { element: this.#elements.get(key), left: x, top: y, right: x + width, bottom: y + height };
  }

  #markOfLine({ points }, i) {
    const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
    return {
      element: this.#lines.children[i],
      left: Math.min(...xs),
      top: Math.min(...ys),
      right: Math.max(...xs),
      bottom: Math.max(...ys),
    };
  }

  #box(box, item, look) {
    let element = this.#elements.get(box.key);
    if (!element) {
      element = svg("g", { "data-key": box.key, tabindex: -1, role: "button", onclick: () => this.press(box.key) });
      element.addEventListener("dblclick", () => item.children && this.toggle(box.key));
      this.#elements.set(box.key, element);
    }
    const { classes, hue, label } = look(item, box.open);
    element.style.transform = `translate(${box.x}px, ${box.y}px)`;
    if (hue === undefined) element.style.removeProperty("--hue");
    else element.style.setProperty("--hue", hue);
    element.setAttribute("class", [box.open ? "frame" : "box", item.children ? "group" : "leaf", ...classes].join(" "));
    element.setAttribute("aria-label", label);
    element.replaceChildren(...(box.open ? this.#frameParts(box, item) : this.#boxParts(box, item)));
    return element;
  }

  #boxParts({ key, width, height }, item) {
    const [title, detail] = linesOf(item);
    const parts = [
      svg("rect", { class: "body", width, height, rx: 6 }),
      svg("rect", { class: "edge", width: 4, height: height - 12, x: 5, y: 6, rx: 2 }),
      svg("text", { class: "title", x: 16, y: 18 }, shorten(title, mostCharacters)),
      svg("text", { class: "detail", x: 16, y: 33 }, shorten(detail, Math.floor(mostCharacters * 1.1))),
    ];
    if (item.children) parts.unshift(svg("rect", { class: "below", width: width - 8, height, x: 4, y: 4, rx: 6 }));
    if (item.children) parts.push(this.#toggleButton(key, width, "+", `Open ${title}`));
    return parts;
  }

  #frameParts({ key, width, height }, item) {
    return [
      svg("rect", { class: "body", width, height, rx: 9 }),
      svg("text", { class: "title", x: 14, y: 20 }, shorten(item.label, 40)),
      this.#toggleButton(key, width, "−", `Close ${item.label}`),
    ];
  }

  #toggleButton(key, width, sign, label) {
    const press = (event) => {
      event.stopPropagation();
      this.toggle(key);
    };
    return svg(
      "g",
      { class: "toggle", transform: `translate(${width - 17}, 15)`, onclick: press },
      svg("title", {}, label),
      svg("circle", { r: 9 }),
      svg("text", { y: 4.5 }, sign),
    );
  }

  #line(segment) {
    const element = svg("path", { d: path(segment.points), "marker-end": segment.isEnd ? "url(#arrow)" : undefined });
    element.__uses = segment.uses;
    return element;
  }

  // Marks boxes as selected, and the lines for which isMarked(writer, reader) holds.
  mark(keys, isMarked) {
    for (const [key, element] of this.#elements) element.classList.toggle("selected", keys.has(key));
    for (const element of this.#lines.children) {
      element.classList.toggle(
        "selected",
        element.__uses.some(([writer, reader]) => isMarked(writer, reader)),
      );
    }
  }

  #viewport() {
    const { clientWidth, clientHeight } = this.element;
    return [clientWidth, clientHeight];
  }

  #moveTo(transform) {
    select(this.element).call(this.#zoom.transform, transform);
  }

  // All of it; or as much of its beginning as can be read, the whole width if possible.
  fit(whole = false) {
    const [width, height] = this.#viewport();
    const { width: drawn, height: tall, boxes } = this.#drawing;
    if (boxes.length === 0) return;
    this.#isToFit = !width;
    if (!width) return;
    const byWidth = Math.min(1, (width - 2 * margin) / drawn);
    const all = Math.min(byWidth, (height - 2 * margin) / tall);
    const scale = whole ? all : Math.max(all, Math.min(comfortable, Math.max(byWidth, readable)));
    const first = boxes.reduce((a, b) => (b.y < a.y ? b : a));
    const centre = drawn * scale <= width ? drawn / 2 : first.x + first.width / 2;
    const y = Math.max(whole ? margin : 2 * margin, (height - tall * scale) / 2);
    this.#moveTo(zoomIdentity.translate(width / 2 - centre * scale, y).scale(scale));
  }

  // Brings a box into view, unless it is there already.
  reveal(key) {
    const box = this.#places.get(key);
    const [width, height] = this.#viewport();
    if (!box || !width) return;
    const { k, x, y } = this.#transform();
    const [left, top] = [box.x * k + x, box.y * k + y];
    const isSeen = left >= 0 && top >= 0 && left + Math.min(box.width * k, width) <= width && top + 30 * k <= height;
    if (isSeen && k >= 0.35) return;
    const scale = Math.max(k, 0.8);
    const centre = [box.x + box.width / 2, box.y + Math.min(box.height / 2, height / 3 / scale)];
    this.#moveTo(zoomIdentity.translate(width / 2 - centre[0] * scale, height / 2 - centre[1] * scale).scale(scale));
  }

  // Where a box is on the screen, so that it can stay there when the layout changes.
  anchor(key) {
    const box = this.#places.get(key);
    if (!box) return undefined;
    const { k, x, y } = this.#transform();
    return { key, left: (box.x + box.width / 2) * k + x, top: box.y * k + y };
  }

  hold({ key, left, top }) {
    const box = this.#places.get(key);
    if (!box) return;
    const { k } = this.#transform();
    this.#moveTo(zoomIdentity.translate(left - (box.x + box.width / 2) * k, top - box.y * k).scale(k));
  }

  zoomBy(factor) {
    select(this.element).call(this.#zoom.scaleBy, factor);
  }

  panBy(x, y) {
    select(this.element).call(this.#zoom.translateBy, x / this.#transform().k, y / this.#transform().k);
  }
}

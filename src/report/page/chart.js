// chart.js — what the plots share: drawing at the width there is, axes, and a label that follows the pointer.

import { axisBottom, axisLeft } from "d3-axis";
import { select } from "d3-selection";
import { html, svg } from "./dom.js";

// Calls draw(width) now and whenever the width of an element changes.
export function onWidth(holder, draw) {
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(holder.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    draw(width);
  }).observe(holder);
}

// A plot of a given height, drawn by draw(svg, width).
export function drawAtWidth(holder, label, height, draw) {
  const surface = svg("svg", { role: "img", "aria-label": label, height, width: "100%" });
  const frame = html("div", { class: "plot-frame" }, surface);
  holder.append(frame);
  onWidth(frame, (width) => {
    surface.replaceChildren();
    surface.setAttribute("viewBox", `0 0 ${width} ${height}`);
    draw(surface, width);
  });
}

// ticks: functions that tell an axis where its ticks are and how they read.
export function drawAxes(surface, { x, y, left, bottom, right, xTicks, yTicks, xLabel, yLabel }) {
  const place = (axis, transform, className) => {
    const group = svg("g", { class: `axis ${className}`, transform });
    select(group).call(axis);
    surface.append(group);
  };
  place(xTicks(axisBottom(x)).tickSizeOuter(0), `translate(0, ${bottom})`, "below");
  place(
    yTicks(axisLeft(y))
      .tickSizeOuter(0)
      .tickSizeInner(left - right),
    `translate(${left}, 0)`,
    "beside",
  );
  surface.append(
    svg("text", { class: "axis-label", x: right, y: bottom + 34, "text-anchor": "end" }, xLabel),
    svg("text", { class: "axis-label", x: 2, y: 12 }, yLabel),
  );
}

// A label beside the pointer while it is over a mark that has text in data-label.
export function followPointer(holder) {
  const label = html("div", { class: "pointer-label", hidden: true, role: "status" });
  holder.append(label);
  holder.addEventListener("pointermove", (event) => {
    const mark = event.target.closest("[data-label]");
    label.hidden = !mark;
    if (!mark) return;
    label.textContent = mark.dataset.label;
    const box = holder.getBoundingClientRect();
    const x = Math.min(event.clientX - box.left + 14, box.width - label.offsetWidth - 4);
    label.style.transform = `translate(${Math.max(0, x)}px, ${event.clientY - box.top + 16}px)`;
  });
  holder.addEventListener("pointerleave", () => {
    label.hidden = true;
  });
}

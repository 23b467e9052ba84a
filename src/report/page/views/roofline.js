// roofline.js — kernels by arithmetic intensity and speed, on log scales, under the ceilings of this machine.

import { scaleLog, scaleSqrt } from "d3-scale";
import { drawAtWidth, drawAxes, followPointer } from "../chart.js";
import { html, nothing, svg } from "../dom.js";
import { duration, number, percent, plural, shorten } from "../format.js";
import { parseSelection } from "../store.js";

const height = 420;
const mostLabels = 10; // of dots
const space = { left: 52, right: 16, top: 22, bottom: 46 };

// Ticks at powers of ten; with their doubles and halves where there would be few.
function ticksOf(axis) {
  const [low, high] = axis.scale().domain();
  const isFew = Math.log10(high / low) < 2.5;
  const values = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
    for (const factor of isFew ? [1, 2, 5] : [1]) values.push(factor * 10 ** power);
  const shown = values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  return axis
    .tickValues(shown)
    .tickFormat((value) => Number(value.toPrecision(1)).toLocaleString("en", { maximumFractionDigits: 9 }));
}

function describe({ title, id, milliseconds, gflops, gbps, ceiling }) {
  const facts = [
    duration(milliseconds),
    number(gflops, "GFLOP/s"),
    number(gbps, "GB/s"),
    `${percent(ceiling)} of ceiling`,
  ];
  return `${title} (step ${id})\n${facts.join(" · ")}`;
}

export class Roofline {
  #dots = [];
  #selected;

  constructor(holder, model, store) {
    Object.assign(this, { model, store });
    this.kernels = model.kernels
      .filter(({ flops, bytes, gflops }) => flops > 0 && bytes > 0 && gflops > 0)
      .sort((a, b) => (b.milliseconds ?? 0) - (a.milliseconds ?? 0)); // small dots over large ones
    this.machine = model.data.machine ?? {};
    if (this.kernels.length === 0) {
      holder.append(nothing("No kernel has a measured speed and counted operations, so there is nothing to place."));
      return;
    }
    drawAtWidth(holder, `Roofline of ${this.kernels.length} kernels`, height, (surface, width) =>
      this.#draw(surface, width),
    );
    const left = model.kernels.length - this.kernels.length;
    if (left > 0)
      holder.append(
        html(
          "p",
          { class: "muted caption" },
          `${plural(left, "step")} without arithmetic, or not measured, cannot be placed.`,
        ),
      );
    followPointer(holder);
  }

  #draw(surface, width) {
    const { peak_gflops: peak, bandwidths = [] } = this.machine;
    const ridges = peak ? bandwidths.map(({ gbps }) => peak / gbps) : [];
    const intensities = [...this.kernels.map(({ flops, bytes }) => flops / bytes), ...ridges];
    const speeds = [...this.kernels.map(({ gflops }) => gflops), ...(peak ? [peak] : [])];
    const [least, most] = [Math.min(...intensities) / 2.5, Math.max(...intensities) * 2.5];
    const lowest = Math.min(...speeds, ...bandwidths.map(({ gbps }) => gbps * least * 2));
    const x = scaleLog()
      .domain([least, most])
      .range([space.left, width - space.right]);
    const y = scaleLog()
      .domain([lowest / 2, Math.max(...speeds) * 2])
      .range([height - space.bottom, space.top]);
    drawAxes(surface, {
      x,
      y,
      left: space.left,
      bottom: height - space.bottom,
      right: width - space.right,
      xTicks: ticksOf,
      yTicks: ticksOf,
      xLabel: "FLOP per byte moved",
      yLabel: "GFLOP/s",
    });
    this.#drawCeilings(surface, x, y);
    this.#drawDots(surface, x, y);
    this.mark(this.#selected);
  }

  #drawCeilings(surface, x, y) {
    const { peak_gflops: peak, bandwidths = [] } = this.machine;
    const [first, last] = x.domain();
    const [floor, top] = y.domain();
    const roof = peak ?? top;
    if (peak) {
      const start = Math.max(first, peak / Math.max(peak / last, ...bandwidths.map(({ gbps }) => gbps)));
      surface.append(
        svg("line", { class: "ceiling", x1: x(start), x2: x(last), y1: y(peak), y2: y(peak) }),
        svg(
          "text",
          { class: "ceiling-label", x: x(last), y: y(peak) - 6, "text-anchor": "end" },
          `peak ${number(peak, "GFLOP/s")}`,
        ),
      );
    }
    bandwidths.forEach(({ name, gbps }, i) => {
      const from = Math.max(first, floor / gbps);
      const to = Math.min(last, roof / gbps);
      if (from >= to) return;
      const [x1, y1, x2, y2] = [x(from), y(from * gbps), x(to), y(to * gbps)];
      const angle = Math.atan2(y2 - y1, x2 - x1);
      // Further along every other line, so that the labels of close ones are apart.
      const along = i % 2 === 0 ? 10 : Math.min(130, Math.max(10, Math.hypot(x2 - x1, y2 - y1) - 110));
      const start = `${x1 + along * Math.cos(angle)}, ${y1 + along * Math.sin(angle) - 5}`;
      const place = `translate(${start}) rotate(${(angle * 180) / Math.PI})`;
      surface.append(
        svg("line", { class: "ceiling", x1, y1, x2, y2 }),
        svg("text", { class: "ceiling-label", transform: place }, `${name} ${number(gbps, "GB/s")}`),
      );
    });
  }

  #drawDots(surface, x, y) {
    const most = Math.max(...this.kernels.map(({ milliseconds }) => milliseconds ?? 0));
    const radius = scaleSqrt()
      .domain([0, most || 1])
      .range([2.5, 13]);
    this.#dots = this.kernels.map((kernel) =>
      svg("circle", {
        class: "dot",
        "data-kernel": kernel.id,
        cx: x(kernel.flops / kernel.bytes),
        cy: y(kernel.gflops),
        r: radius(kernel.milliseconds ?? 0),
        "data-label": describe(kernel),
        onclick: () => this.store.set({ select: `kernel:${kernel.id}` }),
      }),
    );
    surface.append(svg("g", {}, this.#dots));
    this.#drawLabels(surface);
  }

  // Of the kernels that take longest, beside their dots where there is room.
  #drawLabels(surface) {
    const places = this.#dots.map((dot) => ["cx", "cy", "r"].map((name) => Number(dot.getAttribute(name))));
    const taken = places.slice(0, mostLabels).map(([x, y, r]) => [x - r, y - r, x + r, y + r]);
    const [left, right] = [space.left, surface.viewBox.baseVal.width - space.right];
    const isFree = ([x1, y1, x2, y2], own) =>
      x1 >= left &&
      x2 <= right &&
      y1 >= space.top &&
      y2 <= height - space.bottom &&
      taken.every(([a, b, c, d], i) => i === own || x2 <= a || x1 >= c || y2 <= b || y1 >= d);
    this.kernels.slice(0, mostLabels).forEach(({ computes, name }, i) => {
      const text = svg("text", { class: "dot-label" }, shorten(computes || name, 28));
      surface.append(text);
      const width = text.getBBox().width;
      const [x, y, r] = places[i];
      const box = [
        [x + r + 3, y - 7],
        [x - r - 3 - width, y - 7],
        [x - width / 2, y - r - 16],
        [x - width / 2, y + r + 2],
      ]
        .map(([x1, y1]) => [x1, y1, x1 + width, y1 + 14])
        .find((candidate) => isFree(candidate, i));
      if (!box) return text.remove();
      taken.push(box);
      text.setAttribute("x", box[0]);
      text.setAttribute("y", box[1] + 11);
    });
  }

  // Marks the kernels of a selection, as it stands in the address.
  mark(text) {
    this.#selected = text;
    const selection = parseSelection(text);
    const kernels = new Set(selection ? this.model.selectedKernels(selection).map(({ id }) => String(id)) : []);
    for (const dot of this.#dots) dot.classList.toggle("selected", kernels.has(dot.dataset.kernel));
  }
}

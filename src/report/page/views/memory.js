// memory.js — bytes alive at each step against what is reserved, where each tensor lies and how long, and the peak.

import { scaleLinear } from "d3-scale";
import { area, curveStepAfter } from "d3-shape";
import { drawAtWidth, drawAxes, followPointer } from "../chart.js";
import { button, html, nothing, svg } from "../dom.js";
import { byteUnit, bytes, count, overBound, percent } from "../format.js";
import { Table } from "../table.js";

const space = { left: 62, right: 12, top: 24, bottom: 44 };

export class MemoryView {
  constructor(container, { model, store }) {
    Object.assign(this, { model, store });
    this.memory = model.data.memory ?? {};
    this.live = this.memory.live ?? [];
    this.tensors = (this.memory.tensors ?? []).map((tensor) => ({
      ...tensor,
      name: model.text(tensor.name),
      type: model.text(tensor.type),
    }));
    if (!this.live.some((size) => size > 0)) {
      container.append(
        html(
          "section",
          {},
          html("h2", {}, "Memory"),
          nothing("The program keeps nothing between its steps, so no memory is planned."),
        ),
      );
      return;
    }
    this.peak = this.live.indexOf(Math.max(...this.live));
    this.#build(container);
  }

  #build(container) {
    const { arena, lower_bound: bound, device, device_constants: constants } = this.memory;
    const livePlot = html("div", { class: "plot live" });
    const placePlot = html("div", { class: "plot places" });
    this.list = html("div");
    container.append(
      html(
        "section",
        {},
        html("h2", {}, "Memory over time"),
        html(
          "p",
          { class: "muted" },
          `${bytes(this.live[this.peak])} are alive at the peak, step ${count(this.peak)} of ${count(this.live.length)}. ` +
            `The arena${device ? ` on ${device}` : ""} holds ${bytes(arena)}` +
            `${bound ? `, ${overBound(arena, bound)}` : ""}. ` +
            (device ? `Weights take ${bytes(constants)} there. ` : "") +
            "Press a step to see what is alive there.",
        ),
        livePlot,
      ),
      (this.tensors.length > 0 &&
        html(
          "section",
          {},
          html("h2", {}, "Where tensors lie"),
          html("p", { class: "muted" }, "Each box is a tensor: its steps across, its place in the arena upwards."),
          placePlot,
        )) ||
        "",
      html("section", {}, this.list),
    );
    drawAtWidth(livePlot, "Bytes alive at each step", 260, (surface, width) => this.#drawLive(surface, width));
    if (this.tensors.length) {
      drawAtWidth(placePlot, "Lifetimes and places of tensors", 320, (surface, width) =>
        this.#drawPlaces(surface, width),
      );
      followPointer(placePlot);
    }
    this.#choose(this.peak);
  }

  #scales(width, height, most) {
    const unit = byteUnit(most);
    const inUnits = scaleLinear()
      .domain([0, most / unit])
      .nice(5);
    return {
      x: scaleLinear()
        .domain([0, this.live.length])
        .range([space.left, width - space.right]),
      y: scaleLinear()
        .domain(inUnits.domain().map((value) => value * unit))
        .range([height - space.bottom, space.top]),
      yTicks: inUnits.ticks(5).map((value) => value * unit),
    };
  }

  #axes(surface, width, height, { x, y, yTicks }, yLabel) {
    drawAxes(surface, {
      x,
      y,
      left: space.left,
      bottom: height - space.bottom,
      right: width - space.right,
      xTicks: (axis) => axis.ticks(Math.min(this.live.length, width < 500 ? 4 : 10), "d"),
      yTicks: (axis) => axis.tickValues(yTicks).tickFormat((value) => bytes(value)),
      xLabel: "step",
      yLabel,
    });
  }

  #drawLive(surface, width) {
    const height = 260;
    const { arena = 0, lower_bound: bound = 0 } = this.memory;
    const scales = this.#scales(width, height, Math.max(arena, bound, ...this.live) * 1.06);
    const { x, y } = scales;
    this.#axes(surface, width, height, scales, "alive");
    const shape = area()
      .x((_, i) => x(i))
      .y0(y(0))
      .y1((value) => y(value))
      .curve(curveStepAfter);
    surface.append(svg("path", { class: "live-area", d: shape([...this.live, this.live[this.live.length - 1]]) }));
    const lines = [
      [arena, "arena", -5, "ceiling"],
      [bound, "least possible", 13, "ceiling bound"],
    ];
    for (const [value, name, offset, className] of lines)
      if (value > 0)
        surface.append(
          svg("line", { class: className, x1: space.left, x2: width - space.right, y1: y(value), y2: y(value) }),
          svg(
            "text",
            { class: "ceiling-label", x: width - space.right, y: y(value) + offset, "text-anchor": "end" },
            `${name} ${bytes(value)}`,
          ),
        );
    this.cursors = [[surface, x, height]];
    this.#mark();
    surface.onclick = (event) => {
      const place = x.invert(event.clientX - surface.getBoundingClientRect().left);
      this.#choose(Math.min(this.live.length - 1, Math.max(0, Math.floor(place))));
    };
  }

  #drawPlaces(surface, width) {
    const height = 320;
    const most = Math.max(
      this.memory.arena ?? 0,
      ...this.tensors.map(({ offset = 0, bytes: size = 0 }) => offset + size),
    );
    const scales = this.#scales(width, height, most);
    const { x, y } = scales;
    this.#axes(surface, width, height, scales, "place");
    const boxes = this.tensors
      .filter(({ offset }) => offset !== undefined)
      .map((tensor, i) =>
        svg("rect", {
          class: "tensor",
          x: x(tensor.from),
          width: Math.max(1, x(tensor.to + 1) - x(tensor.from) - 0.5),
          y: y(tensor.offset + tensor.bytes),
          height: Math.max(1, y(tensor.offset) - y(tensor.offset + tensor.bytes) - 0.5),
          style: { "--hue": String((i * 137.5) % 360) },
          "data-label": `${tensor.name}\n${tensor.type} · ${bytes(tensor.bytes)} · steps ${tensor.from} to ${tensor.to}`,
          onclick: () => this.#choose(tensor.from),
        }),
      );
    surface.append(svg("g", {}, boxes));
  }

  #mark() {
    for (const [surface, x, height] of this.cursors ?? []) {
      surface.querySelector(".cursor")?.remove();
      surface.append(
        svg("line", {
          class: "cursor",
          x1: x(this.step + 0.5),
          x2: x(this.step + 0.5),
          y1: space.top,
          y2: height - space.bottom,
        }),
      );
    }
  }

  // The kernel that runs at a step, to press.
  #kernelOf(step) {
    const kernel = this.model.kernels[step];
    return (
      kernel && [
        ", while ",
        button(kernel.title, () => this.store.set({ select: `kernel:${kernel.id}` }), { class: "link" }),
        " runs",
      ]
    );
  }

  #choose(step) {
    this.step = step;
    this.#mark();
    const alive = this.tensors.filter(({ from, to }) => from <= step && step <= to);
    const table = new Table(
      [
        { title: "tensor", value: (row) => row.name, className: "names" },
        { title: "type", value: (row) => row.type, cell: (row) => html("code", {}, row.type) },
        { title: "size", value: (row) => row.bytes, cell: (row) => bytes(row.bytes), isNumber: true },
        {
          title: "of what is alive",
          value: (row) => row.bytes / this.live[step],
          cell: (row) => percent(row.bytes / this.live[step]),
          isNumber: true,
        },
        { title: "steps", value: (row) => row.from, cell: (row) => `${row.from} – ${row.to}`, isNumber: true },
      ],
      alive,
      { label: "Tensors alive", order: { column: 2, down: true }, empty: "Nothing recorded is alive at this step." },
    );
    this.list.replaceChildren(
      html("h2", {}, step === this.peak ? "What makes the peak" : `Alive at step ${count(step)}`),
      html("p", { class: "muted" }, `${bytes(this.live[step])} at step ${count(step)}`, this.#kernelOf(step)),
      table.element,
    );
  }

  update() {}
}

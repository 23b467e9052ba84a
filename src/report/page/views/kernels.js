// kernels.js — the kernels on this machine's roofline, as a table, and the fusions between them that were not made.

import { html } from "../dom.js";
import { bytes, duration, number, operations, percent } from "../format.js";
import { Table } from "../table.js";
import { Roofline } from "./roofline.js";

const timeColumn = 5;

function kernelTable(model, store) {
  return new Table(
    [
      { title: "kernel", value: (row) => row.name },
      { title: "step", value: (row) => row.id, isNumber: true },
      { title: "computes", value: (row) => row.computes, className: "names" },
      { title: "kind", value: (row) => row.kind ?? "" },
      { title: "module", value: (row) => row.module, className: "names" },
      { title: "time", value: (row) => row.milliseconds, cell: (row) => duration(row.milliseconds), isNumber: true },
      { title: "share", value: (row) => row.share, cell: (row) => percent(row.share), isNumber: true },
      { title: "arithmetic", value: (row) => row.flops, cell: (row) => operations(row.flops), isNumber: true },
      { title: "traffic", value: (row) => row.bytes, cell: (row) => bytes(row.bytes), isNumber: true },
      { title: "GFLOP/s", value: (row) => row.gflops, cell: (row) => number(row.gflops), isNumber: true },
      { title: "GB/s", value: (row) => row.gbps, cell: (row) => number(row.gbps), isNumber: true },
      { title: "of ceiling", value: (row) => row.ceiling, cell: (row) => percent(row.ceiling), isNumber: true },
      { title: "bound by", value: (row) => row.bound ?? "" },
    ],
    model.kernels,
    {
      label: "Kernels",
      press: (row) => store.set({ select: `kernel:${row.id}` }),
      filter: "Filter kernels",
      order: { column: timeColumn, down: true },
      empty: "No kernel was made: nothing is left to compute.",
    },
  );
}

// What makes the shares add up to the whole, and how a part of a ceiling can be more than all of it.
function notes(model) {
  const outside = model.data.summary?.outside_steps_ms;
  return [
    outside !== undefined &&
      `A run spends another ${duration(outside)} (${percent(outside / model.milliseconds)}) outside its steps: ` +
        "inputs are checked, memory is allocated, outputs are handed over.",
    model.kernels.some(({ ceiling }) => ceiling > 1) &&
      "A step is above 100\u202f% of its ceiling where it multiplies less than is counted (convolutions in tiles, after " +
        "Winograd), in narrower numbers than f32, or on data in a nearer cache.",
  ].filter(Boolean);
}

function missedTable(model, store) {
  const name = (id) => model.kernels[id]?.title ?? `kernel ${id}`;
  const rows = (model.data.missed ?? []).map((miss, rank) => ({ ...miss, rank }));
  return new Table(
    [
      { title: "from", value: (row) => name(row.from), className: "names" },
      { title: "into", value: (row) => name(row.to), className: "names" },
      { title: "because", value: (row) => model.text(row.reason), className: "text" },
      {
        title: "between them",
        value: (row) => model.text(row.buffer),
        cell: (row) => html("code", {}, model.text(row.buffer)),
      },
      {
        title: "time lost",
        value: (row) => row.microseconds,
        cell: (row) => duration(row.microseconds / 1000),
        isNumber: true,
      },
    ],
    rows,
    {
      label: "Missed fusions",
      press: (row) => store.set({ select: `missed:${row.rank}` }),
      filter: "Filter missed fusions",
      order: { column: 4, down: true },
      empty: "No fusion was declined, or none was recorded.",
    },
  );
}

export class KernelsView {
  constructor(container, { model, store }) {
    const { device } = model.data.machine ?? {};
    const plot = html("div", { class: "plot roofline" });
    container.append(
      html(
        "section",
        {},
        html("h2", {}, "Roofline"),
        html(
          "p",
          { class: "muted" },
          "Each dot is a kernel, its area the time it takes. The lines are the ceilings " +
            (device
              ? `of ${device}: arithmetic by its data sheet, copies as measured.`
              : "that were measured on this machine."),
        ),
        plot,
      ),
      html(
        "section",
        {},
        html("h2", {}, "Kernels"),
        notes(model).length > 0 && html("p", { class: "muted" }, notes(model).join(" ")),
        kernelTable(model, store).element,
      ),
      html(
        "section",
        {},
        html("h2", {}, "Fusions missed"),
        html("p", { class: "muted" }, "Ranked by the time that joining the two kernels would save, by estimate."),
        missedTable(model, store).element,
      ),
    );
    this.roofline = new Roofline(plot, model, store);
  }

  update(state) {
    this.roofline.mark(state.select);
  }
}

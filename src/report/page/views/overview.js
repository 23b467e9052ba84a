// overview.js — the first thing seen: the numbers of the model, where its time goes, and what could be better.

import { button, html, nothing } from "../dom.js";
import { bytes, count, duration, number, overBound, percent, plural, rounded } from "../format.js";
import { hasFailed } from "./checks.js";
import { drawTreemap } from "./treemap.js";

const mostBars = 12;

function card(title, value, detail) {
  const [amount, unit] = value.split("\u202f");
  return html(
    "div",
    { class: "card" },
    html("p", { class: "eyebrow" }, title),
    html("p", { class: "figure" }, amount, unit && html("span", { class: "unit" }, `\u202f${unit}`)),
    html("p", { class: "muted" }, detail),
  );
}

function cards({ summary = {}, verification = [], memory }) {
  const failed = verification.filter(hasFailed).length;
  const arena = summary.arena_bytes ?? memory?.arena;
  const bound = summary.arena_lower_bound ?? memory?.lower_bound;
  return html(
    "div",
    { class: "cards" },
    card(
      "one run",
      duration(summary.run_ms),
      summary.runs ? `typical of ${plural(summary.runs, "run")}` : "not measured",
    ),
    summary.gflops !== undefined &&
      card(
        "speed",
        number(summary.gflops, "GFLOP/s"),
        summary.ceiling !== undefined ? `${percent(summary.ceiling)} of the ceiling` : "",
      ),
    card(
      "kernels",
      count(summary.kernels),
      summary.compile_ms !== undefined ? `compiled in ${duration(summary.compile_ms)}` : "",
    ),
    card(
      "graph nodes",
      count(summary.nodes_after),
      summary.nodes_before !== undefined ? `of ${count(summary.nodes_before)} as read` : "",
    ),
    card("memory", bytes(arena), bound > 0 ? overBound(arena, bound) : ""),
    card("parameters", rounded(summary.parameters), summary.parameters >= 1000 ? count(summary.parameters) : ""),
    card(
      "checks",
      verification.length ? (failed ? `${failed} failed` : "all passed") : "–",
      verification.length ? `${plural(verification.length, "check")} made` : "not verified",
    ),
  );
}

function describeMachine({ machine, summary = {} }) {
  if (!machine) return html("p", { class: "machine muted" }, "Nothing was measured on this machine.");
  const bandwidths = (machine.bandwidths ?? []).map(({ name, gbps }) => `${name} ${number(gbps, "GB/s")}`);
  const facts = [
    machine.device,
    machine.device && `kernels ${duration(machine.kernels_ms)}`,
    machine.device && `host steps ${duration(machine.host_ms)}`,
    machine.device && `copies ${duration(machine.copies_ms)}`,
    machine.name,
    machine.cores && plural(machine.cores, "core"),
    machine.threads && plural(machine.threads, "thread"),
    machine.peak_gflops && `peak ${number(machine.peak_gflops, "GFLOP/s")}`,
    ...bandwidths,
    ...Object.entries(summary.sizes ?? {}).map(([name, size]) => `${name} = ${size}`),
  ];
  return html("p", { class: "machine muted" }, facts.filter(Boolean).join(" · "));
}

function bars(entries, total, press) {
  const most = Math.max(...entries.map(({ milliseconds }) => milliseconds));
  return html(
    "ol",
    { class: "bars" },
    entries.map((entry) =>
      html(
        "li",
        {},
        button(entry.title, () => press(entry), { class: "link" }),
        html("span", { class: "bar", style: { "--part": String(entry.milliseconds / most) } }),
        html("span", { class: "number" }, duration(entry.milliseconds)),
        html("span", { class: "number muted" }, percent(entry.milliseconds / total)),
      ),
    ),
  );
}

function slowest(list) {
  return list
    .filter(({ milliseconds }) => milliseconds > 0)
    .sort((a, b) => b.milliseconds - a.milliseconds)
    .slice(0, mostBars);
}

function missedFusions(model, store) {
  const missed = (model.data.missed ?? []).slice(0, 5);
  if (missed.length === 0) return nothing("No fusion was declined, or none was recorded.");
  const name = (id) => model.kernels[id]?.title ?? `kernel ${id}`;
  return html(
    "ol",
    { class: "missed" },
    missed.map(({ from, to, reason, microseconds }, rank) =>
      html(
        "li",
        {},
        button(`${name(from)} → ${name(to)}`, () => store.set({ select: `missed:${rank}` }), { class: "link" }),
        html(
          "p",
          {},
          model.text(reason),
          " ",
          html(
            "span",
            { class: "muted" },
            microseconds !== undefined ? `about ${duration(microseconds / 1000)} lost` : "",
          ),
        ),
      ),
    ),
  );
}

export class OverviewView {
  constructor(container, { model, store }) {
    const { data } = model;
    const kernels = slowest(model.kernels.map(({ id, title, milliseconds }) => ({ id, title, milliseconds })));
    const modules = slowest(
      (data.modules ?? []).map(({ module, milliseconds }) => ({
        title: model.text(module) || "(no module)",
        module: model.text(module),
        milliseconds,
      })),
    );
    container.append(
      cards(data),
      describeMachine(data),
      html("section", {}, html("h2", {}, "Where the time goes"), drawTreemap(model, store)),
      html(
        "div",
        { class: "columns" },
        html(
          "section",
          {},
          html("h2", {}, "By kernel"),
          kernels.length
            ? bars(kernels, model.milliseconds, ({ id }) => store.set({ select: `kernel:${id}` }))
            : nothing("No kernel was timed."),
        ),
        html(
          "section",
          {},
          html("h2", {}, "By module"),
          modules.length
            ? bars(modules, model.milliseconds, ({ module }) => store.set({ select: module ? `module:${module}` : undefined }))
            : nothing("No time per module is known."),
        ),
        html("section", {}, html("h2", {}, "Fusions missed"), missedFusions(model, store)),
      ),
    );
  }

  update() {}
}

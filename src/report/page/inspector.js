// inspector.js — the panel about what is selected: a node, a kernel or a module, each with the way to the others.

import { button, html } from "./dom.js";
import { bytes, count, duration, number, operations, percent } from "./format.js";
import { isComputed, isWithin, titleOf } from "./model.js";
import { parseSelection } from "./store.js";

const mostListed = 60;

// Facts as a list of names and values; those without a value are left out.
function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== undefined && value !== "" && value !== "–");
  return (
    known.length > 0 &&
    html(
      "dl",
      { class: "facts" },
      known.map(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]),
    )
  );
}

function section(title, entries) {
  if (entries.length === 0) return undefined;
  const shown = entries.slice(0, mostListed).map((entry) => html("li", {}, entry));
  if (entries.length > mostListed)
    shown.push(html("li", { class: "muted" }, `and ${count(entries.length - mostListed)} more`));
  return html("section", {}, html("h3", {}, title), html("ul", {}, shown));
}

// How a region of a kernel runs on a GPU.
function describeLaunch({ blocks, threads, registers, spilled_bytes, shared_bytes, occupancy }) {
  const parts = [
    `${count(blocks)} blocks of ${count(threads)} threads`,
    `${count(registers)} registers`,
    spilled_bytes > 0 && `${bytes(spilled_bytes)} spilled`,
    shared_bytes > 0 && `${bytes(shared_bytes)} shared`,
    `occupancy ${percent(occupancy)}`,
  ];
  return parts.filter(Boolean).join(" · ");
}

export class Inspector {
  constructor(panel, { model, store }) {
    Object.assign(this, { panel, model, store });
  }

  update(state) {
    const selection = parseSelection(state.select);
    const content = selection && this.#describe(selection, this.#stage());
    this.panel.hidden = !content;
    document.body.classList.toggle("inspecting", !!content);
    if (!content) return;
    const close = button("✕", () => this.store.set({ select: undefined }), {
      class: "quiet close",
      "aria-label": "Close the panel",
    });
    this.panel.replaceChildren(close, ...content.flat(Infinity).filter(Boolean));
    this.panel.scrollTop = 0;
  }

  #stage() {
    return Math.min(Math.max(this.store.state.stage, 0), this.model.lastStage);
  }

  #describe({ kind, key }, stage) {
    if (kind === "node" && this.model.nodes[key]) return this.#node(this.model.nodes[key], stage);
    if (kind === "kernel" && this.model.kernels[key]) return this.#kernel(this.model.kernels[key], stage);
    if (kind === "missed" && this.model.data.missed?.[key]) return this.#missedFusion(this.model.data.missed[key], key);
    if (kind === "module") return this.#module(key, stage);
    return undefined;
  }

  #nodeLink(id) {
    const node = this.model.nodes[id];
    if (!node) return `node ${id}`;
    const go = () => {
      const stage = this.model.stageWith(id, this.store.state.stage) ?? this.store.state.stage;
      this.store.set({ view: "graph", stage, select: `node:${id}` });
    };
    return [
      button([html("b", {}, node.op), " ", titleOf(node)], go, { class: "link" }),
      " ",
      html("code", { class: "muted" }, this.model.graphAt(this.#stage()).typeOf(node)),
    ];
  }

  #kernelLink(kernel) {
    const go = () => this.store.set({ select: `kernel:${kernel.id}` });
    return [
      button([html("b", {}, kernel.name), kernel.title.slice(kernel.name.length)], go, { class: "link kernel-link" }),
      " ",
      html(
        "span",
        { class: "muted" },
        `step ${kernel.id}${kernel.milliseconds !== undefined ? `, ${duration(kernel.milliseconds)}` : ""}`,
      ),
    ];
  }

  #moduleLink(path) {
    return path && button(path, () => this.store.set({ view: "graph", select: `module:${path}` }), { class: "link" });
  }

  #node(node, stage) {
    const graph = this.model.graphAt(stage);
    const isHere = graph.has(node.id);
    const kernels = this.model.kernelsOfNode(node);
    const inputs = isHere ? graph.inputs.get(node.id) : node.inputs;
    return [
      html("p", { class: "eyebrow" }, `node · ${node.kind}`),
      html("h2", {}, node.op),
      html("p", { class: "name" }, node.name),
      !isHere && html("p", { class: "note" }, "Not part of the graph at this stage."),
      facts([
        ["type", html("code", {}, graph.typeOf(node))],
        ["attributes", node.attributes && html("code", {}, node.attributes)],
        ["module", this.#moduleLink(node.module)],
        ["inside", node.within !== undefined ? this.#nodeLink(node.within) : undefined],
      ]),
      section(
        kernels.length > 1 ? "Kernels" : "Kernel",
        kernels.map((kernel) => this.#kernelLink(kernel)),
      ),
      kernels.length === 0 &&
        isComputed(node) &&
        section("Kernel", [html("span", { class: "muted" }, "none: nothing is left to compute for it")]),
      section(
        "Reads",
        inputs.map((id) => this.#nodeLink(id)),
      ),
      section(
        "Read by",
        (graph.users.get(node.id) ?? []).map((id) => this.#nodeLink(id)),
      ),
      section(
        "Stands for your nodes",
        node.sources.map((name) => html("span", { class: "source" }, name)),
      ),
    ];
  }

  #types(list) {
    return list?.length ? list.map((type) => html("code", { class: "line" }, this.model.text(type))) : undefined;
  }

  // To the other views of what is selected.
  #ways() {
    const views = [
      ["graph", "Show in the graph"],
      ["kernels", "Show on the roofline"],
    ].filter(([view]) => view !== this.store.state.view);
    return html(
      "p",
      { class: "actions" },
      views.map(([view, text]) => button(text, () => this.store.set({ view }), { class: "quiet" })),
    );
  }

  #missedFusion({ from, to, reason, buffer, microseconds }, rank) {
    const part = (title, id) => {
      const kernel = this.model.kernels[id];
      return html(
        "section",
        {},
        html("h3", {}, title),
        html("p", {}, kernel ? this.#kernelLink(kernel) : `kernel ${id}`),
        kernel &&
          facts([
            ["module", this.#moduleLink(kernel.module)],
            ["from", kernel.sources.join(", ")],
          ]),
      );
    };
    return [
      html("p", { class: "eyebrow" }, `missed fusion ${Number(rank) + 1}`),
      html("h2", { class: "long" }, this.model.text(reason)),
      this.#ways(),
      facts([
        ["time lost", duration(microseconds / 1000)],
        ["between them", html("code", {}, this.model.text(buffer))],
      ]),
      part("Writes it", from),
      part("Reads it", to),
    ];
  }

  #kernel(kernel, stage) {
    const loops = this.model.loopsOf(kernel);
    const missed = (this.model.data.missed ?? []).filter(({ from, to }) => from === kernel.id || to === kernel.id);
    const nodes = this.model.nodesOfKernels([kernel], stage);
    return [
      html(
        "p",
        { class: "eyebrow" },
        `kernel · step ${kernel.id}${kernel.kind && kernel.kind !== "kernel" ? ` · ${kernel.kind}` : ""}`,
      ),
      html("h2", { class: "long" }, kernel.name),
      kernel.computes !== kernel.name && html("p", {}, kernel.computes),
      this.#ways(),
      facts([
        [
          "time",
          kernel.milliseconds !== undefined
            ? `${duration(kernel.milliseconds)} · ${percent(kernel.share)} of all`
            : undefined,
        ],
        ["arithmetic", kernel.flops ? `${operations(kernel.flops)} at ${number(kernel.gflops, "GFLOP/s")}` : undefined],
        ["traffic", kernel.bytes ? `${bytes(kernel.bytes)} at ${number(kernel.gbps, "GB/s")}` : undefined],
        ["intensity", kernel.flops && kernel.bytes ? number(kernel.flops / kernel.bytes, "FLOP/B") : undefined],
        [
          "of ceiling",
          kernel.ceiling !== undefined
            ? percent(kernel.ceiling) + (kernel.bound ? `, bound by ${this.model.text(kernel.bound)}` : "")
            : undefined,
        ],
        ["launches", kernel.launches?.map((launch) => html("span", { class: "line" }, describeLaunch(launch)))],
        ["module", this.#moduleLink(kernel.module)],
        ["reads", this.#types(kernel.reads)],
        ["writes", this.#types(kernel.writes)],
      ]),
      section(
        "Nodes it computes",
        (nodes.length ? nodes : kernel.nodes).map((id) => this.#nodeLink(id)),
      ),
      section(
        "From your nodes",
        kernel.sources.map((name) => html("span", { class: "source" }, name)),
      ),
      section(
        "Not fused, and why",
        missed.map((miss) => this.#missed(miss, kernel)),
      ),
      this.#loops(loops, kernel.title),
    ];
  }

  #missed({ from, to, reason, microseconds }, kernel) {
    const other = this.model.kernels[from === kernel.id ? to : from];
    return [
      from === kernel.id ? "into " : "with ",
      other ? this.#kernelLink(other) : "another",
      ": ",
      this.model.text(reason),
      microseconds !== undefined && html("span", { class: "muted" }, ` (about ${duration(microseconds / 1000)} lost)`),
    ];
  }

  #loops(loops, title) {
    if (!loops?.before && !loops?.after) return undefined;
    const parts = [
      ["before", "Loop nest"],
      ["after", loops.before ? "After its schedule" : "Loop nest"],
    ].filter(([key]) => loops[key]);
    return html(
      "section",
      { class: "loops" },
      html(
        "p",
        { class: "actions" },
        button(parts.length > 1 ? "Before and after, side by side" : "Show at full width", () =>
          this.#showLoops(loops, parts, title),
        ),
      ),
      parts.map(([key, title]) =>
        html(
          "details",
          { open: true },
          html("summary", {}, title),
          html("pre", { tabindex: 0 }, this.model.text(loops[key])),
        ),
      ),
    );
  }

  // At the width of the window: beside each other, if there is room.
  #showLoops(loops, parts, title) {
    const dialog = document.getElementById("nests");
    dialog.replaceChildren(
      button("✕", () => dialog.close(), { class: "quiet close", "aria-label": "Close the loop nests" }),
      html("h2", {}, title),
      html(
        "div",
        { class: "nests" },
        parts.map(([key, name]) =>
          html("section", {}, html("h3", {}, name), html("pre", { tabindex: 0 }, this.model.text(loops[key]))),
        ),
      ),
    );
    dialog.showModal();
  }

  #module(path, stage) {
    const kernels = this.model.kernels.filter((kernel) => isWithin(kernel.module, path));
    const nodes = [...this.model.graphAt(stage).inputs.keys()].filter((id) =>
      isWithin(this.model.nodes[id].module, path),
    );
    const timed = kernels.filter((kernel) => kernel.milliseconds !== undefined);
    const time = timed.reduce((sum, kernel) => sum + kernel.milliseconds, 0);
    const ranked = [...kernels].sort((a, b) => (b.milliseconds ?? 0) - (a.milliseconds ?? 0));
    const parent = path.split("/").slice(0, -1).join("/");
    return [
      html("p", { class: "eyebrow" }, "module"),
      html("h2", { class: "long" }, path),
      facts([
        ["nodes here", count(nodes.length)],
        ["steps", count(kernels.length)],
        ["time", timed.length ? `${duration(time)} · ${percent(time / this.model.milliseconds)} of all` : undefined],
        ["inside", parent && this.#moduleLink(parent)],
      ]),
      section(
        "Steps",
        ranked.map((kernel) => this.#kernelLink(kernel)),
      ),
      section(
        "Nodes",
        nodes.map((id) => this.#nodeLink(id)),
      ),
    ];
  }
}

// view.js — the graph at every pass: the stages, what each changed, modules opened and closed, and what is selected.

import { announce, button, html, svg } from "../dom.js";
import { duration, plural } from "../format.js";
import { isWithin } from "../model.js";
import { parseSelection } from "../store.js";
import { Canvas } from "./canvas.js";
import { showChanges } from "./changes.js";
import { showLegend } from "./legend.js";
import { buildTree, chooseOpen, findGroup, findItem, nodesIn, planDrawing } from "./tree.js";
import { startLayouts } from "./worker.js";

const playPause = 1100; // milliseconds a stage stays while playing

export class GraphView {
  #open; // keys of groups open by default, once a tree was seen
  #chosen = new Map(); // key → whether the reader opened or closed it
  #withConstants = false;
  #withRemoved = true;
  #colour = "kind";
  #drawn = 0; // number of the newest drawing asked for
  #picture; // { root, plan, boxOf, items } of what is drawn
  #stage;
  #playing;

  constructor(container, { model, store }) {
    this.model = model;
    this.store = store;
    this.layOut = startLayouts();
    this.#build(container);
    this.canvas = new Canvas(this.surface, { press: (key) => this.#press(key), toggle: (key) => this.toggle(key) });
    this.surface.addEventListener("keydown", (event) => this.#key(event));
  }

  #build(container) {
    const { model } = this;
    this.slider = html("input", {
      type: "range",
      id: "stage",
      min: 0,
      max: model.lastStage,
      step: 1,
      "aria-label": "Stage of the graph",
      disabled: model.lastStage === 0,
      oninput: () => this.goTo(Number(this.slider.value)),
    });
    this.stageName = html("output", { class: "stage-name", for: "stage" });
    this.playButton = button("Play", () => this.#togglePlay(), {
      class: "quiet",
      "aria-pressed": "false",
      disabled: model.lastStage === 0,
    });
    const colour = html(
      "select",
      { id: "colour", "aria-label": "Colour of the boxes", onchange: () => this.#recolour(colour.value) },
      html("option", { value: "kind" }, "by kind"),
      html("option", { value: "kernel", disabled: model.kernels.length === 0 }, "by kernel"),
    );
    this.constants = html("input", { type: "checkbox", onchange: () => this.#showConstants(this.constants.checked) });
    this.removed = html("input", {
      type: "checkbox",
      checked: true,
      onchange: () => this.#showRemoved(this.removed.checked),
    });
    this.surface = svg("svg", {
      id: "graph",
      class: "surface",
      tabindex: 0,
      role: "group",
      "aria-label": "Graph of the model",
    });
    this.changes = html("details", { class: "changes" });
    this.legend = html("div", { class: "legend" });
    this.busy = html("p", { class: "busy", hidden: true }, "Laying out …");
    this.empty = html("p", { class: "busy", hidden: true }, "There is nothing to draw at this stage.");
    container.append(
      html(
        "div",
        { class: "toolbar" },
        html(
          "div",
          { class: "stages" },
          button("‹", () => this.step(-1), {
            class: "quiet",
            "aria-label": "Stage before",
            disabled: model.lastStage === 0,
          }),
          this.slider,
          button("›", () => this.step(1), {
            class: "quiet",
            "aria-label": "Next stage",
            disabled: model.lastStage === 0,
          }),
          this.playButton,
        ),
        this.stageName,
        html(
          "div",
          { class: "choices" },
          html("label", {}, html("span", { class: "wide-only" }, "colour"), colour),
          html(
            "label",
            { title: "Constants, parameters, and the weights that are computed of them alone, when compiling" },
            this.constants,
            " constants",
          ),
          html("label", { title: "What the pass of this stage removed, beside what it left" }, this.removed, " removed"),
          button("Open all", () => this.#openAll(true), { class: "quiet" }),
          button("Close all", () => this.#openAll(false), { class: "quiet" }),
        ),
      ),
      html(
        "div",
        { class: "stage" },
        this.surface,
        this.changes,
        this.busy,
        this.empty,
        html(
          "div",
          { class: "zoom", role: "group", "aria-label": "Zoom" },
          button("+", () => this.canvas.zoomBy(1.3), { "aria-label": "Zoom in" }),
          button("−", () => this.canvas.zoomBy(1 / 1.3), { "aria-label": "Zoom out" }),
          button("fit", () => this.canvas.fit(true), { "aria-label": "Show the whole graph" }),
        ),
      ),
      this.legend,
    );
  }

  update(state) {
    const stage = Math.min(Math.max(state.stage, 0), this.model.lastStage);
    const selection = parseSelection(state.select);
    const isNewStage = stage !== this.#stage;
    this.#stage = stage;
    if (isNewStage) this.#describeStage();
    const opened = selection && this.#openTowards(selection);
    if (isNewStage || opened || !this.#picture) this.#redraw({ reveal: !!selection });
    else this.#mark(true);
  }

  #describeStage() {
    const stage = this.model.stages[this.#stage];
    this.slider.value = this.#stage;
    this.slider.setAttribute("aria-valuetext", `${this.#stage}: ${stage.name}`);
    const facts = [plural(stage.nodes ?? this.model.graphAt(this.#stage).inputs.size, "node")];
    if (stage.changes !== undefined && this.#stage > 0) facts.push(plural(stage.changes, "rewrite"));
    if (stage.milliseconds !== undefined && this.#stage > 0) facts.push(duration(stage.milliseconds));
    this.stageName.replaceChildren(
      html("span", { class: "muted" }, `${this.#stage} of ${this.model.lastStage}`),
      " ",
      html("strong", {}, stage.name),
      " ",
      html("span", { class: "muted" }, facts.join(" · ")),
    );
    showChanges(this.changes, this.model, this.#stage, (id, k) => this.store.set({ stage: k, select: `node:${id}` }));
  }

  #graph() {
    return this.#withRemoved ? this.model.withRemoved(this.#stage) : this.model.graphAt(this.#stage);
  }

  #tree() {
    const root = buildTree(this.model, this.#graph(), this.#withConstants);
    this.#open ??= chooseOpen(root);
    return root;
  }

  #isOpen(key) {
    return this.#chosen.get(key) ?? this.#open.has(key);
  }

  async #redraw({ reveal = false, hold } = {}) {
    const number = ++this.#drawn;
    const root = this.#tree();
    const picture = planDrawing(this.#graph(), root, (key) => this.#isOpen(key));
    const slow = setTimeout(() => {
      this.busy.hidden = false;
    }, 150);
    const drawing = await this.layOut(picture.plan).finally(() => {
      clearTimeout(slow);
      if (number === this.#drawn) this.busy.hidden = true;
    });
    if (number !== this.#drawn) return; // a newer one is under way
    this.empty.hidden = drawing.boxes.length > 0;
    const isFirst = !this.#picture;
    this.#picture = { root, drawing, ...picture };
    const anchor = hold && this.canvas.anchor(hold);
    this.#draw();
    if (isFirst) this.canvas.fit();
    else if (anchor) this.canvas.hold(anchor);
    this.#mark(reveal);
    this.surface.dataset.stage = this.#stage;
    if (isFirst) performance.mark("graph drawn");
  }

  #draw() {
    const changes = this.model.changesAt(this.#stage);
    this.canvas.draw(this.#picture.drawing, this.#picture.items, (item, isOpen) => this.#look(item, isOpen, changes));
    showLegend(this.legend, this.#colour, this.#stage > 0);
  }

  #look(item, isOpen, { added, rewired }) {
    const classes = [];
    const nodes = isOpen ? (item.node ? [item.node] : []) : nodesIn(item);
    if (item.isRemoved) classes.push("removed");
    else if (nodes.some((node) => added.has(node.id))) classes.push("added");
    else if (nodes.some((node) => rewired.has(node.id))) classes.push("rewired");
    let hue;
    if (item.node && this.#colour === "kind") classes.push(`kind-${item.node.kind}`);
    if (this.#colour === "kernel") {
      // Of the kernels that compute it, the last is the one that its result leaves.
      const kernels = new Set(nodes.map((node) => this.model.kernelsOfNode(node).at(-1)));
      const [kernel] = kernels;
      if (kernels.size === 1 && kernel) hue = Math.round((kernel.id * 137.5) % 360);
    }
    const what = item.children ? `${item.label}, ${plural(item.size, "node")}` : `${item.node.op} ${item.node.name}`;
    const change = ["added", "removed"].find((name) => classes.includes(name));
    return { classes, hue, label: change ? `${what}, ${change} by this pass` : what };
  }

  // Marks what is selected: a node, a module, or the nodes of kernels.
  #mark(reveal) {
    const selection = parseSelection(this.store.state.select);
    const nodes = new Set(selection ? this.#selectedNodes(selection) : []);
    const keys = new Set([...nodes].map((id) => this.#picture?.boxOf.get(id)).filter((key) => key !== undefined));
    const group = selection?.kind === "module" && this.#picture && findGroup(this.#picture.root, selection.key);
    if (group) {
      keys.clear();
      keys.add(group.key);
    }
    // Of a kernel the lines inside it, of a node or module also those that lead there.
    const isInside = (writer, reader) => nodes.has(writer) && nodes.has(reader);
    const isBeside = (writer, reader) => nodes.has(writer) || nodes.has(reader);
    this.canvas.mark(keys, ["node", "module"].includes(selection?.kind) ? isBeside : isInside);
    const [first] = keys;
    if (reveal && first !== undefined) this.canvas.reveal(first);
  }

  #selectedNodes({ kind, key }) {
    const ids = [...this.model.graphAt(this.#stage).inputs.keys()];
    if (kind === "node") return [Number(key)];
    if (kind === "module") return ids.filter((id) => isWithin(this.model.nodes[id].module, key));
    return this.model.nodesOfKernels(this.model.selectedKernels({ kind, key }), this.#stage);
  }

  // Opens the groups around what is selected, a constant too; says whether any was closed.
  #openTowards({ kind, key }) {
    let opened = false;
    if (kind === "node" && !this.#withConstants && this.model.graphAt(this.#stage).fixed.has(Number(key)))
      opened = this.#withConstants = this.constants.checked = true;
    const root = this.#tree();
    const item = kind === "node" ? findItem(root, `node:${key}`) : kind === "module" ? findGroup(root, key) : undefined;
    for (let group = item?.parent; group; group = group.parent)
      if (!this.#isOpen(group.key)) {
        this.#chosen.set(group.key, true);
        opened = true;
      }
    return opened;
  }

  #press(key) {
    const item = this.#picture.items.get(key);
    if (item.node) this.store.set({ select: `node:${item.node.id}` });
    else if (key.startsWith("module:")) this.store.set({ select: key });
    else this.toggle(key);
  }

  toggle(key) {
    this.#chosen.set(key, !this.#isOpen(key));
    this.#redraw({ hold: key });
  }

  #openAll(isOpen) {
    const visit = (item) => {
      if (!item.children) return;
      if (item.parent) this.#chosen.set(item.key, isOpen);
      item.children.forEach(visit);
    };
    visit(this.#picture.root);
    this.#redraw().then(() => this.canvas.fit());
  }

  #recolour(colour) {
    this.#colour = colour;
    this.#draw();
    this.#mark(false);
  }

  #showConstants(isShown) {
    this.#withConstants = isShown;
    this.#redraw();
  }

  #showRemoved(isShown) {
    this.#withRemoved = isShown;
    this.#redraw();
  }

  goTo(stage) {
    this.store.set({ stage });
    announce(`Stage ${stage}: ${this.model.stages[stage].name}`);
  }

  step(by) {
    const stage = this.#stage + by;
    if (stage >= 0 && stage <= this.model.lastStage) this.goTo(stage);
    else this.#stop();
  }

  #togglePlay() {
    if (this.#playing) return this.#stop();
    if (this.#stage === this.model.lastStage) this.goTo(0);
    this.#playing = setInterval(() => this.step(1), playPause);
    this.playButton.textContent = "Pause";
    this.playButton.setAttribute("aria-pressed", "true");
  }

  #stop() {
    clearInterval(this.#playing);
    this.#playing = undefined;
    this.playButton.textContent = "Play";
    this.playButton.setAttribute("aria-pressed", "false");
  }

  // Keys while the drawing has the focus.
  #key(event) {
    const far = 80;
    const moves = { ArrowUp: [0, far], ArrowDown: [0, -far], ArrowLeft: [far, 0], ArrowRight: [-far, 0] };
    if (event.shiftKey && moves[event.key]) this.canvas.panBy(...moves[event.key]);
    else if (event.key === "ArrowUp") this.#walk((graph, id) => graph.inputs.get(id));
    else if (event.key === "ArrowDown") this.#walk((graph, id) => graph.users.get(id));
    else if (event.key === "+" || event.key === "=") this.canvas.zoomBy(1.3);
    else if (event.key === "-") this.canvas.zoomBy(1 / 1.3);
    else if (event.key === "0") this.canvas.fit(true);
    else if (event.key === "Enter" || event.key === " ") this.#toggleSelected();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #toggleSelected() {
    const { select } = this.store.state;
    if (this.#picture?.items.get(select)?.children) this.toggle(select);
  }

  // From the selected node to one that it reads or that reads it; from none to the first.
  #walk(neighbours) {
    const selection = parseSelection(this.store.state.select);
    const graph = this.model.graphAt(this.#stage);
    const drawn = (id) => this.#picture?.boxOf.has(id);
    const next =
      selection?.kind === "node"
        ? (neighbours(graph, Number(selection.key)) ?? []).find(drawn)
        : graph.order.find(drawn);
    if (next === undefined) return;
    this.store.set({ select: `node:${next}` });
    announce(`${this.model.nodes[next].op} ${this.model.nodes[next].name}`);
  }
}

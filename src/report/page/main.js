// main.js — starts the page: reads the data, then shows the part of the report that the address asks for.

import { html } from "./dom.js";
import { GraphView } from "./graph/view.js";
import { serveLayouts } from "./graph/worker.js";
import { Inspector } from "./inspector.js";
import { Model } from "./model.js";
import { Search } from "./search.js";
import { Store } from "./store.js";
import { followTheme } from "./theme.js";
import { ChecksView } from "./views/checks.js";
import { KernelsView } from "./views/kernels.js";
import { MemoryView } from "./views/memory.js";
import { OverviewView } from "./views/overview.js";
import { PassesView } from "./views/passes.js";

const views = [
  ["overview", "Overview", OverviewView],
  ["graph", "Graph", GraphView],
  ["passes", "Passes", PassesView],
  ["kernels", "Kernels", KernelsView],
  ["memory", "Memory", MemoryView],
  ["checks", "Checks", ChecksView],
];

const byId = (id) => document.getElementById(id);

class Page {
  #mounted = new Map();

  constructor(model) {
    this.model = model;
    this.store = new Store({ view: "overview", stage: model.lastStage, select: undefined });
    document.title = `${model.data.model ?? "model"} · Tenon report`;
    byId("model").textContent = (model.data.model ?? "a model without a name").split("/").pop();
    byId("model").title = model.data.model ?? "";
    this.#buildTabs();
    this.inspector = new Inspector(byId("inspector"), this);
    this.search = new Search(byId("search"), byId("hits"), this);
    this.store.subscribe((state) => this.#show(state));
    addEventListener("keydown", (event) => this.#key(event));
    byId("help").addEventListener("click", () => byId("keys").showModal());
    this.#show(this.store.state);
  }

  #buildTabs() {
    byId("tabs").append(
      ...views.map(([id, title]) =>
        html(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${id}`,
            "aria-controls": `view-${id}`,
            onclick: () => this.store.set({ view: id }),
          },
          title,
        ),
      ),
    );
    byId("views").append(
      ...views.map(([id, title]) =>
        html("section", { class: `view ${id}`, id: `view-${id}`, role: "tabpanel", "aria-label": title, hidden: true }),
      ),
    );
  }

  // Makes a view when it is first wanted, so that the first one is there at once.
  #mount(id) {
    if (!this.#mounted.has(id)) {
      const View = views.find(([name]) => name === id)[2];
      this.#mounted.set(id, new View(byId(`view-${id}`), this));
    }
    return this.#mounted.get(id);
  }

  #show(state) {
    const shown = views.some(([id]) => id === state.view) ? state.view : "overview";
    for (const [id] of views) {
      byId(`view-${id}`).hidden = id !== shown;
      byId(`tab-${id}`).setAttribute("aria-selected", String(id === shown));
      byId(`tab-${id}`).tabIndex = id === shown ? 0 : -1;
    }
    document.body.dataset.view = shown;
    this.inspector.update(state);
    this.#mount(shown).update(state);
  }

  #key(event) {
    const isTyping = event.target.closest("input:not([type=range]):not([type=checkbox]), select, textarea");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const isTab = event.target.getAttribute("role") === "tab";
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "/") byId("search").focus();
    else if (event.key === "?") byId("keys").showModal();
    else if (event.key === "Escape") this.store.set({ select: undefined });
    else if (views[Number(event.key) - 1]) this.#go(Number(event.key) - 1, false);
    else if (step && isTab)
      this.#go(
        (views.findIndex(([id]) => id === document.body.dataset.view) + step + views.length) % views.length,
        true,
      );
    else if (step && document.body.dataset.view === "graph" && event.target.type !== "range")
      this.#mount("graph").step(step);
    else return;
    event.preventDefault();
  }

  #go(number, isFocused) {
    const [id] = views[number];
    this.store.set({ view: id });
    if (isFocused) byId(`tab-${id}`).focus();
  }
}

function start() {
  followTheme(byId("theme"));
  new Page(new Model(JSON.parse(byId("data").textContent)));
}

// As a worker, this script only lays out graphs. On the page it lets the frame of it be painted first.
if (typeof document === "undefined") serveLayouts();
else requestAnimationFrame(() => setTimeout(start));

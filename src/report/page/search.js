// search.js — finds nodes, modules and kernels by the words of their names, ops and sources.

import { html } from "./dom.js";

const mostHits = 40;

// Everything that can be found: text to match, and the change of state that shows it.
function collectEntries(model) {
  const entries = model.nodes.map((node) => ({
    kind: "node",
    title: node.op,
    detail: node.name,
    id: node.id,
    text: `${node.op} ${node.name} ${node.sources.join(" ")} ${node.type}`.toLowerCase(),
  }));
  const modules = new Set(model.nodes.map((node) => node.module).filter(Boolean));
  for (const module of modules)
    entries.push({ kind: "module", title: module.split("/").pop(), detail: module, text: module.toLowerCase() });
  for (const kernel of model.kernels)
    entries.push({
      kind: "kernel",
      title: kernel.name,
      detail: `${kernel.computes} (step ${kernel.id})`,
      id: kernel.id,
      text: `${kernel.title} kernel ${kernel.sources.join(" ")}`.toLowerCase(),
    });
  return entries;
}

// How well an entry fits: names that begin with what is sought come first.
function score(entry, words) {
  if (!words.every((word) => entry.text.includes(word))) return 0;
  const name = `${entry.title}\n${entry.detail}`.toLowerCase();
  const whole = words.join(" ");
  if (entry.title.toLowerCase() === whole || entry.detail.toLowerCase() === whole) return 4;
  if (name.startsWith(whole)) return 3;
  return words.every((word) => name.includes(word)) ? 2 : 1;
}

export class Search {
  #entries;
  #hits = [];
  #active = -1;

  constructor(field, list, { model, store }) {
    Object.assign(this, { field, list, model, store });
    field.addEventListener("input", () => this.#find());
    field.addEventListener("focus", () => this.#find());
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("blur", () => setTimeout(() => this.#close())); // after a press on a hit
    list.addEventListener("pointerdown", (event) => event.preventDefault()); // keeps the focus in the field
  }

  #find() {
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.#entries ??= collectEntries(this.model);
    const scored = words.length
      ? this.#entries.map((entry) => [score(entry, words), entry]).filter(([points]) => points > 0)
      : [];
    const isHere = (entry) => entry.kind !== "node" || this.model.graphAt(this.#stage()).has(entry.id);
    scored.sort(([a, x], [b, y]) => b - a || isHere(y) - isHere(x));
    this.#hits = scored.slice(0, mostHits).map(([, entry]) => entry);
    this.#active = this.#hits.length ? 0 : -1;
    this.#draw(words.length > 0, scored.length);
  }

  #stage() {
    return Math.min(this.store.state.stage, this.model.lastStage);
  }

  #draw(isAsked, found) {
    this.list.hidden = !isAsked;
    this.field.setAttribute("aria-expanded", String(isAsked));
    const hits = this.#hits.map((entry, i) =>
      html(
        "li",
        {
          role: "option",
          id: `hit-${i}`,
          "aria-selected": String(i === this.#active),
          onclick: () => this.#choose(entry),
        },
        html("span", { class: `badge ${entry.kind}` }, entry.kind),
        html("b", {}, entry.title),
        " ",
        html("span", { class: "muted" }, entry.detail),
      ),
    );
    if (found === 0) hits.push(html("li", { class: "muted" }, "Nothing found."));
    if (found > mostHits)
      hits.push(html("li", { class: "muted" }, `and ${(found - mostHits).toLocaleString("en")} more`));
    this.list.replaceChildren(...hits);
    this.#point();
  }

  #point() {
    [...this.list.querySelectorAll("[role=option]")].forEach((hit, i) => {
      hit.setAttribute("aria-selected", String(i === this.#active));
      if (i === this.#active) hit.scrollIntoView({ block: "nearest" });
    });
    if (this.#active >= 0) this.field.setAttribute("aria-activedescendant", `hit-${this.#active}`);
    else this.field.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (moves[event.key] && this.#hits.length) {
      this.#active = (this.#active + moves[event.key] + this.#hits.length) % this.#hits.length;
      this.#point();
    } else if (event.key === "Enter" && this.#hits[this.#active]) this.#choose(this.#hits[this.#active]);
    else if (event.key === "Escape") this.field.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #choose(entry) {
    this.field.blur();
    if (entry.kind === "kernel") this.store.set({ view: "kernels", select: `kernel:${entry.id}` });
    else if (entry.kind === "module") this.store.set({ view: "graph", select: `module:${entry.detail}` });
    else
      this.store.set({
        view: "graph",
        select: `node:${entry.id}`,
        stage: this.model.stageWith(entry.id, this.#stage()) ?? this.#stage(),
      });
  }

  #close() {
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
  }
}

// store.js — what is shown, kept in the address so that a link or the back button brings it back:
// #view=graph&stage=3&select=node:17

export class Store {
  #listeners = [];
  #defaults;

  constructor(defaults) {
    this.#defaults = defaults;
    this.state = this.#read();
    addEventListener("popstate", () => this.#notify(this.#read()));
  }

  #read() {
    const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const stage = Number.parseInt(given.stage, 10);
    return { ...this.#defaults, ...given, stage: Number.isNaN(stage) ? this.#defaults.stage : stage };
  }

  #notify(next) {
    const previous = this.state;
    this.state = next;
    for (const listener of this.#listeners) listener(next, previous);
  }

  // Steps through the stages replace each other in the history; anything else can be gone back from.
  set(changes) {
    const next = { ...this.state, ...changes };
    const kept = Object.entries(next).filter(([key, value]) => value !== undefined && value !== this.#defaults[key]);
    const hash = "#" + new URLSearchParams(kept).toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
    const onlyStage = Object.keys(changes).every((key) => key === "stage");
    history[onlyStage ? "replaceState" : "pushState"](null, "", hash);
    this.#notify(next);
  }

  subscribe(listener) {
    this.#listeners.push(listener);
  }
}

// "node:17" → { kind: "node", key: "17" }
export function parseSelection(text) {
  const colon = text?.indexOf(":") ?? -1;
  return colon < 0 ? undefined : { kind: text.slice(0, colon), key: text.slice(colon + 1) };
}

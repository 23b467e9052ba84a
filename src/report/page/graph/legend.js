// legend.js — what the colours of boxes mean.

import { html } from "../dom.js";

const kinds = [
  ["compute", "computes"],
  ["data", "moves data"],
  ["shape", "shapes"],
  ["control", "control flow"],
  ["memory", "memory"],
  ["input", "input, output"],
  ["parameter", "parameter, constant"],
];

export function showLegend(container, colour, hasChanges) {
  const entries =
    colour === "kind"
      ? kinds.map(([kind, text]) => html("span", { class: `key kind-${kind}` }, html("i"), text))
      : [html("span", { class: "muted" }, "one colour per kernel; grey: several, or none")];
  if (hasChanges)
    entries.push(
      html("span", { class: "key added" }, html("i"), "added"),
      html("span", { class: "key rewired" }, html("i"), "rewired"),
      html("span", { class: "key removed" }, html("i"), "removed"),
    );
  container.replaceChildren(...entries);
}

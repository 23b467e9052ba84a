// changes.js — what the pass of a stage added, rewired and removed, as lists to press.

import { button, html } from "../dom.js";
import { count } from "../format.js";
import { titleOf } from "../model.js";

const mostListed = 100;

function list(title, className, ids, model, stage, select) {
  if (ids.length === 0) return [];
  const entries = ids.slice(0, mostListed).map((id) => {
    const node = model.nodes[id];
    const press = () => select(id, stage);
    return html("li", {}, button([html("b", {}, node.op), " ", titleOf(node)], press, { class: "link" }));
  });
  if (ids.length > mostListed)
    entries.push(html("li", { class: "muted" }, `and ${count(ids.length - mostListed)} more`));
  return [html("h3", { class: className }, `${title} ${count(ids.length)}`), html("ul", {}, entries)];
}

// Fills a details element for stage k; select(node, stage) shows a node where it exists.
export function showChanges(details, model, k, select) {
  const { added, rewired, removed } = model.changesAt(k);
  const parts = [
    ["+", added.size, "added"],
    ["−", removed.length, "removed"],
    ["~", rewired.size, "rewired"],
  ].filter(([, number]) => number > 0);
  details.hidden = k === 0;
  details.replaceChildren(
    html(
      "summary",
      {},
      parts.length ? "This pass: " : "This pass changed no nodes",
      parts.map(([sign, number, name]) =>
        html(
          "span",
          { class: `chip ${name}`, title: name },
          `${sign}${count(number)}`,
          html("span", { class: "wide-only" }, ` ${name}`),
        ),
      ),
    ),
    html(
      "div",
      { class: "change-lists" },
      list(
        "Added",
        "added",
        [...added].filter((id) => model.nodes[id]),
        model,
        k,
        select,
      ),
      list(
        "Removed",
        "removed",
        removed.filter((id) => model.nodes[id]),
        model,
        k - 1,
        select,
      ),
      list(
        "Rewired",
        "rewired",
        [...rewired].filter((id) => model.nodes[id]),
        model,
        k,
        select,
      ),
    ),
  );
}

// passes.js — what each pass did and took, the rewrites in order, and what was declined.

import { html } from "../dom.js";
import { count, duration, plural } from "../format.js";
import { Table } from "../table.js";

// The stage that holds the graph after each pass: those that changed nothing have none.
function findStages({ passes = [] }, stages) {
  let next = 1;
  const isOf = (stage, pass) =>
    stage?.name === pass.pass && ["milliseconds", "changes", "nodes"].every((key) => stage[key] === pass[key]);
  return passes.map((pass) => (isOf(stages[next], pass) ? next++ : undefined));
}

// Of those that changed something, or of the others.
function passTable(model, store, hasChanges) {
  const stageOf = findStages(model.data, model.stages);
  const all = (model.data.passes ?? []).map((pass, i) => ({ ...pass, number: i + 1, stage: stageOf[i] }));
  const rows = all.filter(({ changes }) => (changes > 0) === hasChanges);
  const show = ({ stage }) => store.set({ view: "graph", stage, select: undefined });
  return new Table(
    [
      { title: "pass", value: (row) => row.pass },
      { title: "rewrites", value: (row) => row.changes, isNumber: true },
      { title: "nodes after", value: (row) => row.nodes, isNumber: true },
      { title: "time", value: (row) => row.milliseconds, cell: (row) => duration(row.milliseconds), isNumber: true },
      { title: "round", value: (row) => row.round, isNumber: true },
      { title: "order", value: (row) => row.number, isNumber: true },
    ],
    rows,
    {
      label: hasChanges ? "Passes" : "Passes that changed nothing",
      press: show,
      canPress: ({ stage }) => stage !== undefined,
      filter: hasChanges && "Filter passes",
      empty: all.length > 0 ? "No pass changed anything." : "No pass was recorded.",
      order: { column: 5, down: false },
    },
  );
}

function rewriteTable(model, store) {
  const names = (list) => (list ?? []).map(model.text).join(", ");
  const show = ({ stage }) => store.set({ view: "graph", stage, select: undefined });
  return new Table(
    [
      { title: "rule", value: (row) => model.text(row.rule) },
      { title: "pass", value: (row) => model.stages[row.stage]?.name ?? "" },
      { title: "numerics", value: (row) => model.text(row.numerics) },
      { title: "replaced", value: (row) => names(row.removed), className: "text" },
    ],
    model.data.rewrites ?? [],
    { label: "Rewrites", press: show, filter: "Filter rewrites", empty: "No rewrite was recorded." },
  );
}

function remarkTable(model, store) {
  const stage = model.lastStage;
  const rows = (model.data.remarks ?? []).map((remark) => ({
    pass: model.text(remark.pass),
    rule: model.text(remark.rule),
    node: model.text(remark.node),
    text: model.text(remark.text),
    microseconds: remark.microseconds,
  }));
  const byName = new Map(model.nodes.flatMap((node) => [...node.sources, node.name].map((name) => [name, node])));
  const show = (row) => {
    const { id } = byName.get(row.node);
    store.set({ view: "graph", stage: model.stageWith(id, stage) ?? stage, select: `node:${id}` });
  };
  return new Table(
    [
      { title: "node", value: (row) => row.node, className: "names" },
      { title: "pass", value: (row) => row.pass },
      { title: "rule", value: (row) => row.rule },
      { title: "declined because", value: (row) => row.text, className: "text" },
      {
        title: "time lost",
        value: (row) => row.microseconds,
        cell: (row) => duration(row.microseconds / 1000),
        isNumber: true,
      },
    ],
    rows,
    {
      label: "Remarks",
      press: show,
      canPress: (row) => byName.has(row.node),
      filter: "Filter remarks",
      empty: "Nothing was declined.",
    },
  );
}

export class PassesView {
  constructor(container, { model, store }) {
    const idle = (model.data.passes ?? []).filter(({ changes }) => !changes);
    const idleTime = idle.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
    container.append(
      html(
        "section",
        {},
        html("h2", {}, "Passes"),
        html("p", { class: "muted" }, "Press a pass that changed something to see the graph after it."),
        passTable(model, store, true).element,
        idle.length > 0 &&
          html(
            "details",
            { class: "idle" },
            html(
              "summary",
              { class: "muted" },
              `${plural(idle.length, "run")} of passes changed nothing, in ${duration(idleTime)}`,
            ),
            passTable(model, store, false).element,
          ),
      ),
      html(
        "section",
        {},
        html("h2", {}, "Rewrites"),
        model.data.rewrites_left_out > 0 &&
          html("p", { class: "muted" }, `The first of them; ${count(model.data.rewrites_left_out)} more were made.`),
        rewriteTable(model, store).element,
      ),
      html(
        "section",
        {},
        html("h2", {}, "Remarks"),
        html("p", { class: "muted" }, "What could have been done and was not, with the reason."),
        remarkTable(model, store).element,
      ),
    );
  }

  update() {}
}

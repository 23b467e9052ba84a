// checks.js — what verification found, pass by pass.

import { html } from "../dom.js";
import { count, number, plural } from "../format.js";
import { Table } from "../table.js";

function verdict(value) {
  const className = { ok: "good", FAILED: "bad" }[value] ?? "muted";
  return html("span", { class: `verdict ${className}` }, value ?? "–");
}

// What a reader types, for the sizes that this report has.
function verifyCommand({ model = "MODEL", summary }) {
  const words = ["tenon", "verify", model];
  for (const [name, size] of Object.entries(summary?.sizes ?? {})) words.push("--dim", `${name}=${size}`);
  return words.map((word) => (/^[\w./:=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

export function hasFailed(row) {
  return ["numbers", "gradients", "lint", "parameters"].some((key) => row[key] === "FAILED");
}

export class ChecksView {
  constructor(container, { model }) {
    const rows = (model.data.verification ?? []).map((row, i) => ({ ...row, number: i + 1 }));
    const failed = rows.filter(hasFailed).length;
    const check = (key) => ({ title: key, value: (row) => row[key] ?? "", cell: (row) => verdict(row[key]) });
    const difference = (title, key) => ({
      title,
      value: (row) => row[key],
      cell: (row) => number(row[key]),
      isNumber: true,
    });
    const reason = model.data.not_verified;
    const empty = [
      `The model was not verified for this report${reason ? `: ${reason}` : ""}. This does it by itself:`,
      html("code", { class: "command" }, verifyCommand(model.data)),
    ];
    const table = new Table(
      [
        { title: "level", value: (row) => row.level ?? "" },
        { title: "pass", value: (row) => row.pass },
        { title: "order", value: (row) => row.number, isNumber: true },
        { title: "rewrites", value: (row) => row.changes, isNumber: true },
        check("numbers"),
        difference("difference", "difference"),
        check("gradients"),
        difference("gradient difference", "gradient_difference"),
        check("lint"),
        check("parameters"),
        { title: "notes", value: (row) => (row.notes ?? []).join("; "), className: "text" },
      ],
      rows,
      { label: "Checks", order: { column: 2, down: false }, filter: "Filter checks", empty },
    );
    const outcome = failed
      ? `${count(failed)} of ${plural(rows.length, "check")} failed.`
      : "After each of these passes the model was compared with what it was before, and the program with the optimised model.";
    container.append(
      html(
        "section",
        {},
        html("h2", {}, "Verification"),
        (rows.length > 0 && html("p", { class: "muted" }, outcome)) || "",
        table.element,
      ),
    );
  }

  update() {}
}

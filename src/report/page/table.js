// table.js — a table that is sorted by pressing its headings, and filtered by typing.

import { button, html, nothing } from "./dom.js";
import { count } from "./format.js";

const pageSize = 100; // rows drawn at first, and more each time they are asked for

// columns: { title, value(row) to sort by, cell(row) to show (or the value), isNumber, className }
// options: label, order: { column, down }, press(row), canPress(row) (all, if left out), filter (what the search field
// asks for), empty (instead of no rows)
export class Table {
  #columns;
  #rows;
  #options;
  #order;
  #limit = pageSize;
  #body = html("tbody");
  #more = html("div", { class: "more" });
  #words = [];

  constructor(columns, rows, options) {
    this.#columns = columns;
    this.#rows = rows;
    this.#options = options;
    this.#order = options.order;
    this.element = rows.length === 0 ? nothing(options.empty) : this.#build();
  }

  #build() {
    this.headings = this.#columns.map((column, i) =>
      html(
        "th",
        { scope: "col", class: this.#classOf(column) },
        button(column.title, () => this.#sortBy(i), { class: "sort" }),
      ),
    );
    const table = html(
      "table",
      { "aria-label": this.#options.label },
      html("thead", {}, html("tr", {}, this.headings)),
      this.#body,
    );
    const field =
      this.#options.filter &&
      html("input", {
        type: "search",
        class: "filter",
        placeholder: this.#options.filter,
        "aria-label": this.#options.filter,
        oninput: () => this.#filterBy(field.value),
      });
    this.#draw();
    return html(
      "div",
      { class: "table-holder" },
      field,
      html("div", { class: "scroll", tabindex: 0 }, table),
      this.#more,
    );
  }

  #classOf(column) {
    return [column.isNumber && "number", column.className].filter(Boolean).join(" ");
  }

  #sortBy(column) {
    const down = this.#order?.column === column ? !this.#order.down : !!this.#columns[column].isNumber;
    this.#order = { column, down };
    this.#draw();
  }

  #filterBy(text) {
    this.#words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.#draw();
  }

  #matches(row) {
    if (this.#words.length === 0) return true;
    const text = this.#columns
      .map((column) => column.value(row))
      .join(" ")
      .toLowerCase();
    return this.#words.every((word) => text.includes(word));
  }

  #sorted(rows) {
    if (!this.#order) return rows;
    const { value } = this.#columns[this.#order.column];
    const sign = this.#order.down ? -1 : 1;
    const compare = (a, b) =>
      typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return [...rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined); // unknown last
      return sign * compare(x, y);
    });
  }

  #draw() {
    this.headings.forEach((heading, i) => {
      const isOrder = this.#order?.column === i;
      heading.setAttribute("aria-sort", isOrder ? (this.#order.down ? "descending" : "ascending") : "none");
    });
    const rows = this.#sorted(this.#rows.filter((row) => this.#matches(row)));
    this.#body.replaceChildren(...rows.slice(0, this.#limit).map((row) => this.#row(row)));
    const left = rows.length - this.#limit;
    const showMore = () => {
      this.#limit += 10 * pageSize;
      this.#draw();
    };
    this.#more.replaceChildren(
      ...(rows.length === 0 ? [nothing("No row matches.")] : []),
      ...(left > 0
        ? [button(`Show ${count(Math.min(left, 10 * pageSize))} more of ${count(left)}`, showMore, { class: "quiet" })]
        : []),
    );
  }

  #row(row) {
    const { canPress = () => true } = this.#options;
    const press = canPress(row) ? this.#options.press : undefined;
    const cells = this.#columns.map((column, i) => {
      const content = column.cell ? column.cell(row) : column.value(row);
      return html(
        "td",
        { class: this.#classOf(column) },
        i === 0 && press ? button(content, () => press(row), { class: "link" }) : content,
      );
    });
    const wholeRow = press && ((event) => event.target.closest("button, a") || press(row));
    return html("tr", { class: press && "pressable", onclick: wholeRow || undefined }, cells);
  }
}

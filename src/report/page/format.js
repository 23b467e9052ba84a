// format.js — numbers as people read them. What is not known is a dash.

const unknown = "–";
const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

// Three digits that matter: 1234.5 → 1,235; 12.345 → 12.3; 0.01234 → 0.0123.
function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en");
  if (size < 1e-3) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

export function count(value) {
  return isKnown(value) ? value.toLocaleString("en") : unknown;
}

export function number(value, unit = "") {
  return isKnown(value) ? digits(value) + (unit && "\u202f" + unit) : unknown;
}

export function duration(milliseconds) {
  if (!isKnown(milliseconds)) return unknown;
  if (milliseconds >= 1000) return number(milliseconds / 1000, "s");
  if (milliseconds >= 1 || milliseconds === 0) return number(milliseconds, "ms");
  return number(milliseconds * 1000, "µs");
}

function inThousands(value, units) {
  if (!isKnown(value)) return unknown;
  let power = 0;
  while (value >= 1000 && power + 1 < units.length) {
    value /= 1000;
    ++power;
  }
  return number(value, units[power]);
}

export function bytes(value) {
  return inThousands(value, ["B", "kB", "MB", "GB", "TB"]);
}

export function operations(value) {
  return inThousands(value, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"]);
}

// 109482240 → 109 M
export function rounded(value) {
  return inThousands(value, ["", "k", "M", "G", "T"]);
}

export function percent(part) {
  if (!isKnown(part)) return unknown;
  return part > 0 && part < 0.001 ? "< 0.1\u202f%" : (100 * part).toFixed(part < 0.1 ? 1 : 0) + "\u202f%";
}

// How much more memory is taken than any plan would need.
export function overBound(arena, bound) {
  return arena / bound < 1.0005 ? "the least possible" : `${percent(arena / bound - 1)} over the least possible`;
}

// One thing, two things.
export function plural(value, word) {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

export function shorten(text, most) {
  return text.length <= most ? text : text.slice(0, Math.ceil(most / 2) - 1) + "…" + text.slice(-Math.floor(most / 2));
}

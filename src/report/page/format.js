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

// How many times a value can be divided before it is less than the step from one unit to the next.
function powerOf(value, step, units) {
  let power = 0;
  for (; value >= step && power + 1 < units.length; value /= step) ++power;
  return power;
}

function inUnits(value, step, units) {
  if (!isKnown(value)) return unknown;
  const power = powerOf(value, step, units);
  return number(value / step ** power, units[power]);
}

const byteUnits = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value) {
  return inUnits(value, 1024, byteUnits);
}

// The bytes of the unit that so many are written in: round numbers of it are round to read.
export function byteUnit(value) {
  return 1024 ** powerOf(value, 1024, byteUnits);
}

export function operations(value) {
  return inUnits(value, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"]);
}

// 109482240 → 109 M
export function rounded(value) {
  return inUnits(value, 1000, ["", "k", "M", "G", "T"]);
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

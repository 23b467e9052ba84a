// difference.mjs — how far the outputs of two engines differ: node bench/difference.mjs OURS.npz THEIRS.npz
//
// It prints max |a - b| / max |b|, the most of all outputs; Infinity where one has another shape, or is not finite where the
// other is. Where nothing in THEIRS is finite, the inputs do not suit the model, and it fails.
import { readArrays } from "./npz.mjs";

const isSame = (a, b) => a === b || (Number.isNaN(a) && Number.isNaN(b));

function difference(ours, { dims, data }) {
  if (ours === undefined || String(ours.dims) !== String(dims)) return Infinity;
  let worst = 0, largest = data.length === 0 ? 0 : -1;
  for (let i = 0; i < data.length; i++) {
    const a = Number(ours.data[i]), b = Number(data[i]);
    if (Number.isFinite(b)) largest = Math.max(largest, Math.abs(b));
    if (!isSame(a, b)) worst = Math.max(worst, Number.isFinite(a - b) ? Math.abs(a - b) : Infinity);
  }
  if (largest < 0) throw new Error("no element of an output is finite");
  return worst === 0 ? 0 : worst / largest;
}

const [ours, theirs] = process.argv.slice(2).map(readArrays);
console.log(Math.max(...Object.entries(theirs).map(([name, array]) => difference(ours[name], array))));

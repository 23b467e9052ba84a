// peers_report.mjs — what bench/peers found, as a table and as a plot.

// { model, ratio, ... } of one number of threads, the best first.
function rowsOf(results, threads) {
  const rows = results.rows.flatMap((row) => row.times.filter((times) => times.threads === threads)
    .map((times) => ({ model: row.model, difference: row.difference, isUnsure: row.own !== undefined, ...times })));
  return rows.sort((a, b) => b.ratio - a.ratio);
}

// Of those whose outputs are known to agree.
function geometricMean(rows, field = "ratio") {
  const logarithms = rows.filter((row) => !row.isUnsure).map((row) => Math.log(row[field]));
  return Math.exp(logarithms.reduce((sum, each) => sum + each, 0) / logarithms.length);
}

const threadCounts = (results) => [...new Set(results.rows.flatMap((row) => row.times.map((times) => times.threads)))];
const plural = (count) => `${count} thread${count === 1 ? "" : "s"}`;
// Three digits that matter.
const brief = (number) => (number >= 100 ? number.toFixed(0) : number.toPrecision(3));

export function writeTable(results) {
  let text = `${results.machine}; ${results.peer}; rounds: ${results.rounds}, of ${results.seconds} s each\n` +
    "ratio: ONNX Runtime's median time over Tenon's; at best: of the fastest runs; ready: to optimise and compile, or load; " +
    "MiB: the most memory\n";
  const line = (cells) => cells.map((cell, i) => (i === 0 ? cell.padEnd(34) : cell.padStart(10))).join(" ").trimEnd() + "\n";
  for (const threads of threadCounts(results)) {
    const rows = rowsOf(results, threads);
    text += `\nwith ${plural(threads)}\n` +
      line(["model", "ratio", "at best", "Tenon ms", "ORT ms", "difference", "ready ms", "ORT ms", "MiB", "ORT MiB"]);
    for (const row of rows)
      text += line([row.model, row.ratio.toFixed(2), row.best_ratio.toFixed(2), brief(row.tenon_ms), brief(row.ort_ms),
        row.difference.toExponential(1) + (row.isUnsure ? "*" : ""),
        brief(row.compile_ms), brief(row.load_ms), brief(row.tenon_mib), brief(row.ort_mib)]);
    text += line([`geometric mean of ${rows.filter((row) => !row.isUnsure).length}`, geometricMean(rows).toFixed(2),
      geometricMean(rows, "best_ratio").toFixed(2)]);
  }
  for (const { model, own } of results.rows.filter((row) => row.own !== undefined))
    text += `\n* ${model}: levels of ONNX Runtime's optimiser differ by ${own.toExponential(1)}; it is not in the mean\n`;
  const problems = results.rows.filter((row) => row.problem !== undefined);
  if (problems.length > 0) text += "\nnot measured\n" + problems.map((row) => `${row.model}: ${row.problem}\n`).join("");
  return text;
}

const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

// A panel for each number of threads: a bar for each model on a scale of logarithms, from 1 to its ratio.
export function drawPlot(results) {
  const panels = threadCounts(results).map((threads) => ({ threads, rows: rowsOf(results, threads) }));
  const ratios = panels.flatMap((panel) => panel.rows.map((row) => row.ratio));
  const least = Math.log2(Math.min(0.5, ...ratios)), most = Math.log2(Math.max(2, ...ratios));
  const names = 210, bars = 330, rowHeight = 17, top = 58, width = names + bars + 70;
  const height = top + rowHeight * (Math.max(0, ...panels.map((panel) => panel.rows.length)) + 2);
  const at = (ratio) => names + (bars * (Math.log2(ratio) - least)) / (most - least);
  const label = (x, y, text, more = "") => `<text x="${x.toFixed(1)}" y="${y}" ${more}>${escape(text)}</text>\n`;
  const draw = ({ threads, rows }, column) => {
    let svg = `<g transform="translate(${column * width})">\n`;
    svg += label(8, 20, `ONNX Runtime's time over Tenon's, with ${plural(threads)}: ` +
      `geometric mean ${geometricMean(rows).toFixed(2)}`, 'font-weight="bold"');
    for (let power = Math.ceil(least); power <= most; power++) {
      const x = at(2 ** power).toFixed(1);
      svg += `<line x1="${x}" x2="${x}" y1="${top - 8}" y2="${height}" stroke="${power === 0 ? "#444" : "#ddd"}"/>\n`;
      svg += label(+x, top - 14, String(2 ** power), 'text-anchor="middle"');
    }
    rows.forEach((row, i) => {
      const y = top + rowHeight * i, x = Math.min(at(1), at(row.ratio));
      svg += label(names - 8, y + 12, row.model, 'text-anchor="end"');
      const length = Math.abs(at(row.ratio) - at(1));
      svg += `<rect x="${x.toFixed(1)}" y="${y + 2}" width="${length.toFixed(1)}" height="${rowHeight - 5}" ` +
        `fill="${row.ratio >= 1 ? "#3a7d44" : "#c0582b"}"/>\n`;
      svg += label(Math.max(at(1), at(row.ratio)) + 5, y + 12, row.ratio.toFixed(2));
    });
    return svg + "</g>\n";
  };
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width * panels.length}" height="${height}" ` +
    `font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n` +
    panels.map(draw).join("") + "</svg>\n";
}

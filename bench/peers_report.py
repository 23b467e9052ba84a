"""peers_report.py — what bench/peers found, as tables and as a plot."""

import math


def rows_of(results, threads):
    """Rows of one number of threads, the best first."""
    rows = [{"model": row["model"], "difference": row["difference"], "unsure": "own" in row, **times}
            for row in results["rows"] for times in row["times"] if times["threads"] == threads]
    return sorted(rows, key=lambda row: -row["ratio"])


def geometric_mean(rows, field="ratio"):
    """Of those whose outputs are known to agree."""
    logarithms = [math.log(row[field]) for row in rows if not row["unsure"]]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else float("nan")


def thread_counts(results):
    return list(dict.fromkeys(times["threads"] for row in results["rows"] for times in row["times"]))


def plural(count):
    return f"{count} thread{'' if count == 1 else 's'}"


def brief(number):
    """Three digits that matter."""
    return f"{number:.0f}" if number >= 100 else f"{number:#.3g}"


def line(cells):
    return " ".join(cell.ljust(34) if i == 0 else cell.rjust(10) for i, cell in enumerate(cells)).rstrip() + "\n"


def difference_cell(row):
    return f"{row['difference']:.1e}" + ("*" if row["unsure"] else "")


def problems_text(results):
    problems = [row for row in results["rows"] if "problem" in row]
    return "\nnot measured\n" + "".join(f"{row['model']}: {row['problem']}\n" for row in problems) if problems else ""


def write_peers_table(results):
    peer = results["short"]
    text = (f"{results['machine']}; {results['peer']}; rounds: {results['rounds']}, of {results['seconds']} s each\n"
            f"ratio: {results['peer']}'s median time over Tenon's; at best: of the fastest runs; ready: to optimise and compile, or "
            "load; MiB: the most memory\n")
    for threads in thread_counts(results):
        rows = rows_of(results, threads)
        text += f"\nwith {plural(threads)}\n"
        text += line(["model", "ratio", "at best", "Tenon ms", f"{peer} ms", "difference", "ready ms", f"{peer} ms", "MiB", f"{peer} MiB"])
        for row in rows:
            text += line([row["model"], f"{row['ratio']:.2f}", f"{row['best_ratio']:.2f}", brief(row["tenon_ms"]),
                          brief(row["peer_ms"]), difference_cell(row), brief(row["compile_ms"]), brief(row["load_ms"]),
                          brief(row["tenon_mib"]), brief(row["peer_mib"])])
        text += line([f"geometric mean of {sum(not row['unsure'] for row in rows)}", f"{geometric_mean(rows):.2f}",
                      f"{geometric_mean(rows, 'best_ratio'):.2f}"])
    for row in results["rows"]:
        if "own" in row:
            text += f"\n* {row['model']}: levels of {results['peer']}'s optimiser differ by {row['own']:.1e}; it is not in the mean\n"
    return text + problems_text(results)


def write_builds_table(results):
    text = (f"{results['machine']}; old: {results['old']}, new: {results['new']}; rounds: {results['rounds']}, of "
            f"{results['seconds']} s each\nratio: the old build's median time over the new one's; at best: of the fastest runs; "
            "cold: to optimise and compile with an empty cache; cached: from the cache\n")
    for threads in thread_counts(results):
        rows = rows_of(results, threads)
        text += f"\nwith {plural(threads)}\n"
        text += line(["model", "ratio", "at best", "old ms", "new ms", "difference", "cold", "old ms", "new ms", "cached",
                      "old ms", "new ms"])
        for row in rows:
            text += line([row["model"], f"{row['ratio']:.3f}", f"{row['best_ratio']:.3f}", brief(row["old_ms"]),
                          brief(row["new_ms"]), difference_cell(row), f"{row['compile_ratio']:.2f}", brief(row["old_compile_ms"]),
                          brief(row["new_compile_ms"]), f"{row['cached_ratio']:.2f}", brief(row["old_cached_ms"]),
                          brief(row["new_cached_ms"])])
        means = {field: geometric_mean(rows, field) for field in ("ratio", "best_ratio", "compile_ratio", "cached_ratio")}
        text += line([f"geometric mean of {len(rows)}", f"{means['ratio']:.3f}", f"{means['best_ratio']:.3f}", "", "", "",
                      f"{means['compile_ratio']:.2f}", "", "", f"{means['cached_ratio']:.2f}"])
        if rows:
            text += line([f"smallest: {rows[-1]['model']}", f"{rows[-1]['ratio']:.3f}"])
    return text + problems_text(results)


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def draw_plot(results):
    """A panel for each number of threads: a bar for each model on a scale of logarithms, from 1 to its ratio."""
    panels = [(threads, rows_of(results, threads)) for threads in thread_counts(results)]
    ratios = [row["ratio"] for _, rows in panels for row in rows]
    least, most = math.log2(min([0.5, *ratios])), math.log2(max([2, *ratios]))
    names, bars, row_height, top = 210, 330, 17, 58
    width = names + bars + 70
    height = top + row_height * (max([0, *(len(rows) for _, rows in panels)]) + 2)

    def at(ratio):
        return names + bars * (math.log2(ratio) - least) / (most - least)

    def label(x, y, text, more=""):
        return f'<text x="{x:.1f}" y="{y}" {more}>{escape(text)}</text>\n'

    def draw(column, threads, rows):
        svg = f'<g transform="translate({column * width})">\n'
        svg += label(8, 20, f"{results['peer']}'s time over Tenon's, with {plural(threads)}: geometric mean {geometric_mean(rows):.2f}",
                     'font-weight="bold"')
        for power in range(math.ceil(least), math.floor(most) + 1):
            x, colour = at(2.0**power), "#444" if power == 0 else "#ddd"
            svg += f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 8}" y2="{height}" stroke="{colour}"/>\n'
            svg += label(x, top - 14, f"{2.0**power:g}", 'text-anchor="middle"')
        for i, row in enumerate(rows):
            y, begin, end = top + row_height * i, *sorted((at(1), at(row["ratio"])))
            svg += label(names - 8, y + 12, row["model"], 'text-anchor="end"')
            svg += (f'<rect x="{begin:.1f}" y="{y + 2}" width="{end - begin:.1f}" height="{row_height - 5}" '
                    f'fill="{"#3a7d44" if row["ratio"] >= 1 else "#c0582b"}"/>\n')
            svg += label(end + 5, y + 12, f"{row['ratio']:.2f}")
        return svg + "</g>\n"

    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(panels)}" height="{height}" '
            'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n' +
            "".join(draw(column, *panel) for column, panel in enumerate(panels)) + "</svg>\n")

// treemap.js — the time of a run, divided among modules and within them among kernels, as areas.

import { hierarchy, treemap } from "d3-hierarchy";
import { followPointer, onWidth } from "../chart.js";
import { html, nothing } from "../dom.js";
import { duration, percent } from "../format.js";

const mostAreas = 240;
const height = 420;
const titledDepths = 2; // modules further in have no title of their own

// { name, path, children } of modules; the leaves are kernels, or modules where all kernels would be too many to see.
function timeTree(kernels, depth) {
  const root = { name: "", path: "", children: new Map() };
  for (const kernel of kernels) {
    let place = root;
    const parts = kernel.module.split("/").filter(Boolean);
    for (const part of parts.slice(0, depth)) {
      const path = place.path ? `${place.path}/${part}` : part;
      if (!place.children.has(path)) place.children.set(path, { name: part, path, children: new Map() });
      place = place.children.get(path);
    }
    if (depth >= parts.length && depth === Infinity)
      place.children.set(kernel.id, {
        name: kernel.computes || kernel.name,
        kernel,
        time: kernel.milliseconds,
        ceiling: kernel.ceiling,
      });
    else add(place, kernel);
  }
  return joinChains(root);
}

// The time of a kernel, to the module that stands for it.
function add(place, kernel) {
  const key = "own time";
  if (!place.children.has(key))
    place.children.set(key, { name: place.name || "(no module)", path: place.path, time: 0, reached: 0 });
  const own = place.children.get(key);
  own.time += kernel.milliseconds;
  own.reached += kernel.milliseconds * (kernel.ceiling ?? 0);
  own.ceiling = own.reached / own.time;
}

function joinChains(place) {
  if (!place.children) return place;
  const children = [...place.children.values()].map(joinChains);
  if (place.path && children.length === 1) {
    const [only] = children;
    return only.kernel || only.path === place.path ? only : { ...only, name: `${place.name}/${only.name}` };
  }
  return { ...place, children };
}

// With kernels as leaves if they are few enough; else modules, as deep as is still few enough.
function chooseTree(kernels) {
  if (kernels.length <= mostAreas) return timeTree(kernels, Infinity);
  const deepest = Math.max(...kernels.map(({ module }) => module.split("/").length));
  for (let depth = deepest; depth > 0; --depth) {
    const tree = timeTree(kernels, depth);
    if (hierarchy(tree).leaves().length <= mostAreas) return tree;
  }
  return timeTree([...kernels].sort((a, b) => b.milliseconds - a.milliseconds).slice(0, mostAreas), Infinity);
}

function drawArea(place, total, store) {
  const { kernel, path, ceiling = 0 } = place.data;
  const isLeaf = !place.children;
  const name = kernel ? kernel.title : path || place.data.name;
  const label = `${name}\n${duration(place.value)} · ${percent(place.value / total)}`;
  const isNamed = place.x1 - place.x0 >= 34 && place.y1 - place.y0 >= 15;
  const select = kernel ? `kernel:${kernel.id}` : path ? `module:${path}` : undefined;
  return html(
    "button",
    {
      type: "button",
      class: `area ${isLeaf ? "leaf" : "outer"} ${isNamed ? "named" : ""}`,
      "data-label": label,
      "aria-label": label.replace("\n", ", "),
      tabindex: isLeaf ? -1 : 0,
      onclick: () => store.set({ select }),
      style: {
        left: `${place.x0}px`,
        top: `${place.y0}px`,
        width: `${place.x1 - place.x0}px`,
        height: `${place.y1 - place.y0}px`,
        "--ceiling": String(Math.min(1, ceiling)),
      },
    },
    isNamed && html("span", {}, place.data.name),
  );
}

export function drawTreemap(model, store) {
  const kernels = model.kernels.filter(({ kind, milliseconds }) => kind !== "view" && milliseconds > 0);
  if (kernels.length === 0) return nothing("No kernel was timed.");
  const tree = hierarchy(chooseTree(kernels))
    .sum(({ time = 0 }) => time)
    .sort((a, b) => b.value - a.value);
  const isDrawn = ({ depth, children }) => depth > 0 && (!children || depth <= titledDepths);
  const areas = html("div", { class: "areas", style: { height: `${height}px` } });
  const holder = html("div", { class: "treemap" }, areas);
  onWidth(areas, (width) => {
    treemap()
      .size([width, height])
      .paddingInner(2)
      .paddingTop(({ depth }) => (depth > 0 && depth <= titledDepths ? 18 : 0))
      .round(true)(tree);
    areas.replaceChildren(
      ...tree
        .descendants()
        .filter(isDrawn)
        .map((place) => drawArea(place, model.milliseconds, store)),
    );
  });
  followPointer(holder);
  const what = tree.leaves().some(({ data }) => data.kernel) ? "kernel" : "module";
  return [
    html(
      "p",
      { class: "muted" },
      `Each area is a ${what}, as large as its share of the time. Its colour says how close it comes to what this machine ` +
        "can do:",
      html("span", { class: "scale" }, "0\u202f%", html("i"), "100\u202f% of its ceiling"),
    ),
    holder,
  ];
}

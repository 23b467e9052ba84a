// tree.js — the graph of one stage as a tree of the user's modules, and the part of it that is drawn.
//
// A group is a module, a node with a nested graph, or, where a module holds more nodes than can be looked at, a run
// of them. What is drawn is a box for each node and each closed group, and a frame for each open one.

import { plural } from "../format.js";
import { isWithin } from "../model.js";

const mostChildren = 120; // of one group, before runs of its nodes become groups
const runLength = 40;
const mostBoxes = 100; // opened of their own accord

function newGroup(key, label, parent, node) {
  return { key, label, parent, node, children: [], size: 0 };
}

// The root of the tree. Constants, and what is computed of them alone, are left out unless asked for.
export function buildTree(model, graph, withConstants) {
  const regions = new Map(); // of each node with nested graphs, their names
  for (const id of graph.inputs.keys()) {
    const { within, region } = model.nodes[id];
    if (graph.has(within)) regions.set(within, (regions.get(within) ?? new Set()).add(region));
  }
  const root = newGroup("", "", undefined);
  const groups = new Map([["", root]]);
  const open = (key, label, parent, node) => {
    if (!groups.has(key)) {
      groups.set(key, newGroup(key, label, parent, node));
      parent.children.push(groups.get(key));
    }
    return groups.get(key);
  };
  const home = (node) => {
    if (graph.has(node.within)) {
      const outer = nodeGroup(model.nodes[node.within]);
      return regions.get(node.within).size > 1
        ? open(`region:${node.within}:${node.region}`, node.region, outer)
        : outer;
    }
    let group = root;
    let path = "";
    for (const part of node.module.split("/").filter(Boolean)) {
      path += (path && "/") + part;
      group = open("module:" + path, part, group);
    }
    return group;
  };
  const nodeGroup = (node) => open("node:" + node.id, node.op, home(node), node);

  for (const id of graph.order) {
    const node = model.nodes[id];
    if (!withConstants && graph.fixed.has(id)) continue;
    if (regions.has(id)) nodeGroup(node);
    else {
      const parent = home(node);
      parent.children.push({
        key: "node:" + id,
        label: node.op,
        detail: graph.typeOf(node) || node.name,
        node,
        parent,
        isRemoved: graph.removed?.has(id),
      });
    }
  }
  finish(root);
  return root;
}

// Counts, drops empty groups, lets a module of one node be that node and a chain of modules with nothing beside it be
// one, and splits what is too long.
function finish(group) {
  group.children = group.children.map((child) => (child.children ? finish(child) : child)).filter(Boolean);
  if (group.children.length === 0 && !group.node && group.parent) return undefined;
  if (group.children.length === 1 && group.parent && !group.node) {
    const [only] = group.children;
    if (!only.node) only.label = `${group.label}/${only.label}`;
    only.parent = group.parent;
    return only;
  }
  if (group.children.length > mostChildren) splitIntoRuns(group);
  for (const child of group.children) child.parent = group;
  group.size = countNodes(group.children);
  return group;
}

// Those of groups among them, and a node that has nested graphs, too.
function countNodes(items) {
  return items.reduce(
    (sum, { node, children, size, isRemoved }) => sum + (children ? size : 0) + (node && !isRemoved ? 1 : 0),
    0,
  );
}

function splitIntoRuns(group) {
  const runs = [];
  for (let start = 0; start < group.children.length; start += runLength) {
    const part = group.children.slice(start, start + runLength);
    const run = newGroup(`run:${runs.length}:${group.key}`, `nodes ${start + 1} – ${start + part.length}`, group);
    run.detail = `${part[0].label} … ${part[part.length - 1].label}`;
    run.children = part;
    for (const child of part) child.parent = run;
    run.size = countNodes(part);
    runs.push(run);
  }
  group.children = runs;
}

export function findItem(item, key) {
  if (item.key === key) return item;
  for (const child of item.children ?? []) {
    const found = findItem(child, key);
    if (found) return found;
  }
  return undefined;
}

// The group of a module; of the first one inside it, where it has none because it holds nothing else.
export function findGroup(item, path) {
  const own = item.key.startsWith("module:") ? item.key.slice("module:".length) : undefined;
  if (own !== undefined && isWithin(own, path)) return item;
  for (const child of item.children ?? []) {
    const found = findGroup(child, path);
    if (found) return found;
  }
  return undefined;
}

export function nodesIn(item) {
  return [...(item.node ? [item.node] : []), ...(item.children ?? []).flatMap(nodesIn)];
}

// The groups that are open unless the reader says otherwise: level by level, as long as the boxes are few.
export function chooseOpen(root) {
  const open = new Set([root.key]);
  let boxes = root.children.length;
  let level = root.children.filter((child) => child.children);
  while (level.length) {
    const more = level.reduce((sum, group) => sum + group.children.length - 1, 0);
    if (boxes + more > mostBoxes) break;
    boxes += more;
    for (const group of level) open.add(group.key);
    level = level.flatMap((group) => group.children.filter((child) => child.children));
  }
  return open;
}

// What is drawn of a tree: `plan` for the layout, and for each node the box that stands for it.
export function planDrawing(graph, root, isOpen) {
  const boxOf = new Map(); // node number → key of a box or frame
  const items = new Map(); // key → group or node of the tree
  const frames = new Map(); // key of an open group → its part of the plan

  const claim = (item, key) => {
    if (item.node) boxOf.set(item.node.id, key);
    for (const child of item.children ?? []) claim(child, key);
  };
  const visit = (item) => {
    items.set(item.key, item);
    if (!item.children || !isOpen(item.key)) {
      claim(item, item.key);
      return { key: item.key, ...boxSize(item) };
    }
    if (item.node) boxOf.set(item.node.id, item.key);
    const frame = { key: item.key, title: titleWidth(item), children: item.children.map(visit), edges: new Map() };
    frames.set(item.key, frame);
    return frame;
  };
  const plan = visit(root);
  connect(graph, boxOf, items, frames);
  for (const frame of frames.values()) frame.edges = [...frame.edges.values()];
  return { plan, boxOf, items };
}

// Draws each use of a value as segments: out of the frames around its writer, across, and into those around its reader.
// A segment ends at a child of the frame, or at the frame's own "in" or "out".
function connect(graph, boxOf, items, frames) {
  const ancestors = (key) => {
    const path = [];
    for (let item = items.get(key); item; item = item.parent) path.push(item.key);
    return path.reverse();
  };
  const segment = (frameKey, from, to, writer, reader) => {
    const edges = frames.get(frameKey).edges;
    const key = `${from}>${to}`;
    if (!edges.has(key)) edges.set(key, { from, to, uses: [] });
    edges.get(key).uses.push([writer, reader]);
  };
  for (const [reader, sources] of graph.inputs)
    for (const writer of new Set(sources)) {
      const from = boxOf.get(writer);
      const to = boxOf.get(reader);
      if (from === undefined || to === undefined || from === to) continue;
      const up = ancestors(from);
      const down = ancestors(to);
      let common = 0;
      while (common + 1 < up.length && common + 1 < down.length && up[common + 1] === down[common + 1]) ++common;
      if (common + 1 >= up.length || common + 1 >= down.length) continue; // one is the frame around the other
      segment(up[common], up[common + 1], down[common + 1], writer, reader);
      for (let i = common + 2; i < up.length; ++i) segment(up[i - 1], up[i], "out", writer, reader);
      for (let i = common + 2; i < down.length; ++i) segment(down[i - 1], "in", down[i], writer, reader);
    }
}

const characterWidth = 7.2;
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const titleWidth = (group) => clamp(group.label.length, 4, 40) * characterWidth + 40;

// The two lines of a box.
export function linesOf(item) {
  if (item.children) return [item.label, item.detail ?? plural(item.size, "node")];
  return [item.label, item.detail];
}

export const mostCharacters = 34;
function boxSize(item) {
  const [title, detail] = linesOf(item);
  const length = Math.max(title.length * 1.12, detail.length * 0.92);
  const button = item.children ? 26 : 0;
  return { width: Math.round(clamp(length, 7, mostCharacters) * characterWidth + 22 + button), height: 42 };
}

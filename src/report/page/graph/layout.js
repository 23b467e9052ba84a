// layout.js — where boxes, frames and lines are drawn. Each open group is laid out by dagre on its own, inside out, so
// that the time grows with the number of groups, and groups that look alike (the layers of a transformer) cost one.

import dagre from "dagre/dist/dagre.min.js";

const padding = 18;
const titleHeight = 34;

const known = new Map(); // of the groups laid out so far, by their looks

// sizes: [[width, height]]; edges: [[from, to]], both numbers of boxes.
function arrange(sizes, edges) {
  const looks = JSON.stringify([sizes, edges]);
  if (!known.has(looks)) known.set(looks, arrangeByDagre(sizes, edges));
  return known.get(looks);
}

function arrangeByDagre(sizes, edges) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ nodesep: 20, ranksep: 28, edgesep: 12, ranker: "tight-tree" });
  sizes.forEach(([width, height], i) => graph.setNode(String(i), { width, height }));
  for (const [from, to] of edges) graph.setEdge(String(from), String(to), {});
  dagre.layout(graph);
  const { width, height } = graph.graph();
  return {
    width: Number.isFinite(width) ? width : 0,
    height: Number.isFinite(height) ? height : 0,
    centres: sizes.map((_, i) => graph.node(String(i))).map(({ x, y }) => [x, y]),
    routes: edges.map(([from, to]) => graph.edge(String(from), String(to)).points.map(({ x, y }) => [x, y])),
  };
}

// One frame in coordinates of its own: the size it takes, the boxes in it, the lines between them, and at which x
// lines enter and leave it.
function layOutFrame(frame) {
  const inner = new Map();
  const sizes = frame.children.map((child) => {
    if (!child.children) return [child.width, child.height];
    const own = layOutFrame(child);
    inner.set(child.key, own);
    return [own.width, own.height];
  });
  const numbers = new Map(frame.children.map((child, i) => [child.key, i]));
  for (const port of ["in", "out"])
    if (frame.edges.some((edge) => edge.from === port || edge.to === port)) {
      numbers.set(port, sizes.length);
      sizes.push([1, 1]);
    }
  const arranged = arrange(
    sizes,
    frame.edges.map((edge) => [numbers.get(edge.from), numbers.get(edge.to)]),
  );
  const width = Math.max(arranged.width, frame.title) + 2 * padding;
  const height = arranged.height + titleHeight + padding;
  const left = (width - arranged.width) / 2;
  const move = ([x, y]) => [x + left, y + titleHeight];

  const centres = arranged.centres.map(move);
  const boxes = frame.children.map((child, i) => ({
    key: child.key,
    x: centres[i][0] - sizes[i][0] / 2,
    y: centres[i][1] - sizes[i][1] / 2,
    width: sizes[i][0],
    height: sizes[i][1],
    frame: inner.get(child.key),
  }));
  const enter = numbers.has("in") ? centres[numbers.get("in")][0] : undefined;
  const leave = numbers.has("out") ? centres[numbers.get("out")][0] : undefined;
  const lines = frame.edges.map((edge, i) => {
    const points = arranged.routes[i].map(move);
    attach(points, boxes[numbers.get(edge.from)], boxes[numbers.get(edge.to)]);
    if (edge.from === "in") points.unshift([enter, 0]);
    if (edge.to === "out") points.push([leave, height]);
    const isEnd = edge.to !== "out" && boxes[numbers.get(edge.to)].frame?.enter === undefined;
    return { uses: edge.uses, points, isEnd };
  });
  return { width, height, boxes, lines, enter, leave };
}

// A line to a frame goes straight down to where the lines inside it begin; likewise from one. One between neighbours has
// a bend where dagre took it to the middle of the frame, and needs none.
function attach(points, from, to) {
  const straight = 12;
  if (points.length === 3 && (from?.frame?.leave ?? to?.frame?.enter) !== undefined) points.splice(1, 1);
  if (from?.frame?.leave !== undefined) {
    const [x, y] = [from.x + from.frame.leave, from.y + from.height];
    points.splice(0, 1, [x, y], [x, y + straight]);
  }
  if (to?.frame?.enter !== undefined) {
    const [x, y] = [to.x + to.frame.enter, to.y];
    points.splice(points.length - 1, 1, [x, y - straight], [x, y]);
  }
}

// The whole drawing, in one system of coordinates: frames before what is in them.
export function layOut(plan) {
  const drawing = { boxes: [], lines: [] };
  const place = (frame, x, y) => {
    for (const line of frame.lines)
      drawing.lines.push({ ...line, points: line.points.map(([a, b]) => [a + x, b + y]) });
    for (const box of frame.boxes) {
      drawing.boxes.push({
        key: box.key,
        x: box.x + x,
        y: box.y + y,
        width: box.width,
        height: box.height,
        open: !!box.frame,
      });
      if (box.frame) place(box.frame, box.x + x, box.y + y);
    }
  };
  const root = layOutFrame(plan);
  place(root, 0, 0);
  return { width: root.width, height: root.height, ...drawing };
}

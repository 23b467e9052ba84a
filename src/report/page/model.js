// model.js — the data of a report, decoded: nodes, the graph at each stage, and which kernel computes what.
//
// Any part of the data may be missing; what is asked of it here is then empty.

// Whether a module is another, or inside it.
export const isWithin = (module, outer) => module === outer || module.startsWith(outer + "/");

// What a node is known by: its name, or, where that says no more than its op, the user's node it comes from.
export const titleOf = ({ op, name, sources }) => (name && name !== op ? name : (sources[0] ?? name));

export const isComputed = ({ kind }) => !["constant", "parameter", "input", "output"].includes(kind);

const mostOps = 4; // named for a kernel

const idOf = (value) => (Array.isArray(value) ? value[0] : value);

export class Model {
  constructor(data) {
    this.data = data;
    const strings = data.strings ?? [];
    this.text = (index) => (typeof index === "string" ? index : (strings[index] ?? ""));
    this.nodes = (data.nodes ?? []).map((node, id) => this.#decode(node, id));
    this.stages = data.stages?.length ? data.stages : [{ name: "as read", added: this.nodes.map((node) => node.id) }];
    this.kernels = (data.kernels ?? []).map((kernel, id) => this.#decodeKernel(kernel, id));
    this.lastStage = this.stages.length - 1;
    this.#graphs = new Map();
    this.#placeKernels();
  }

  #graphs;
  #kernelsOfNode = new Map();
  #kernelsOfSource = new Map();

  #decode(node, id) {
    return {
      id,
      op: this.text(node.op),
      name: this.text(node.name),
      type: this.text(node.type),
      attributes: this.text(node.attributes),
      module: this.text(node.module),
      sources: (node.sources ?? []).map(this.text),
      kind: node.kind ?? "compute",
      inputs: (node.inputs ?? []).map(idOf),
      within: node.in,
      region: this.text(node.region),
    };
  }

  // `computes` names the ops of a kernel: conv, add, relu.
  #decodeKernel(kernel, id) {
    const nodes = (kernel.nodes ?? []).filter((node) => this.nodes[node]);
    const ops = [
      ...new Set(
        nodes
          .map((node) => this.nodes[node])
          .filter(isComputed)
          .map(({ op }) => op),
      ),
    ];
    const computes = ops.slice(0, mostOps).join(", ") + (ops.length > mostOps ? ", …" : "");
    const name = this.text(kernel.name);
    return {
      ...kernel,
      id,
      nodes,
      name,
      computes,
      title: computes && computes !== name ? `${name} ${computes}` : name,
      module: this.text(kernel.module),
      sources: (kernel.sources ?? []).map(this.text),
    };
  }

  #placeKernels() {
    const add = (map, key, kernel) => map.set(key, [...(map.get(key) ?? []), kernel]);
    for (const kernel of this.kernels) {
      for (const id of kernel.nodes) add(this.#kernelsOfNode, id, kernel);
      for (const source of kernel.sources) add(this.#kernelsOfSource, source, kernel);
    }
  }

  // The kernels that compute a node: of the last graph by number, of earlier ones by the user's names.
  kernelsOfNode(node) {
    const direct = this.#kernelsOfNode.get(node.id);
    if (direct || this.graphAt(this.lastStage).has(node.id)) return direct ?? [];
    const names = node.sources.length ? node.sources : [node.name];
    return [...new Set(names.flatMap((name) => this.#kernelsOfSource.get(name) ?? []))];
  }

  // The nodes of stage k that kernels compute, what each kernel is about first.
  nodesOfKernels(kernels, k) {
    const isTheirs = (id) => this.kernelsOfNode(this.nodes[id]).some((kernel) => kernels.includes(kernel));
    const ids = kernels.length ? [...this.graphAt(k).inputs.keys()].filter(isTheirs) : [];
    const main = new Set(kernels.map(({ nodes }) => nodes[0]));
    return [...ids.filter((id) => main.has(id)), ...ids.filter((id) => !main.has(id))];
  }

  // The kernels of a selection: one, or the two that were not fused.
  selectedKernels({ kind, key }) {
    if (kind === "kernel") return [this.kernels[key]].filter(Boolean);
    const missed = kind === "missed" && this.data.missed?.[key];
    return missed ? [this.kernels[missed.from], this.kernels[missed.to]].filter(Boolean) : [];
  }

  // The graph after stage k: which nodes there are, what each reads, who reads it, and of which type it is.
  graphAt(k) {
    if (!this.#graphs.has(k)) this.#graphs.set(k, this.#replay(k));
    return this.#graphs.get(k);
  }

  #replay(k) {
    const inputs = new Map();
    const types = new Map();
    const fixed = new Set(); // follow from constants alone, and no kernel computes them
    const isOfKernel = (id) => this.#kernelsOfNode.has(id) && isComputed(this.nodes[id]);
    for (const stage of this.stages.slice(0, k + 1)) {
      for (const id of [...(stage.removed ?? []), ...(stage.unfixed ?? [])]) fixed.delete(id);
      for (const id of stage.removed ?? []) inputs.delete(id);
      for (const id of stage.added ?? []) if (this.nodes[id]) inputs.set(id, this.nodes[id].inputs);
      for (const id of stage.fixed ?? []) if (inputs.has(id) && !isOfKernel(id)) fixed.add(id);
      for (const [id, values] of stage.rewired ?? []) if (inputs.has(id)) inputs.set(id, values.map(idOf));
      for (const [id, type] of stage.retyped ?? []) types.set(id, this.text(type));
    }
    const users = new Map();
    for (const [id, sources] of inputs)
      for (const source of new Set(sources)) {
        if (!users.has(source)) users.set(source, []);
        users.get(source).push(id);
      }
    return {
      inputs,
      users,
      fixed,
      has: (id) => inputs.has(id),
      typeOf: (node) => types.get(node.id) ?? node.type,
      order: orderOf(inputs),
    };
  }

  // What stage k did. The first made everything, so nothing in it counts as changed.
  changesAt(k) {
    const stage = k > 0 ? this.stages[k] : {};
    const changed = [...(stage.rewired ?? []), ...(stage.retyped ?? [])].map(([id]) => id);
    return { added: new Set(stage.added ?? []), rewired: new Set(changed), removed: stage.removed ?? [] };
  }

  // The graph after stage k with what its pass removed, which reads what it read before.
  withRemoved(k) {
    const now = this.graphAt(k);
    const { removed } = this.changesAt(k);
    if (removed.length === 0) return now;
    const before = this.graphAt(k - 1);
    const gone = removed.filter((id) => before.has(id));
    const inputs = new Map([...now.inputs, ...gone.map((id) => [id, before.inputs.get(id)])]);
    return {
      inputs,
      fixed: new Set([...now.fixed, ...gone.filter((id) => before.fixed.has(id))]),
      removed: new Set(gone),
      has: (id) => inputs.has(id),
      typeOf: (node) => (now.has(node.id) ? now : before).typeOf(node),
      order: orderOf(inputs),
    };
  }

  // The stage nearest to k whose graph has the node, or undefined.
  stageWith(id, k) {
    for (let distance = 0; distance < this.stages.length; ++distance)
      for (const stage of [k - distance, k + distance])
        if (stage >= 0 && stage <= this.lastStage && this.graphAt(stage).has(id)) return stage;
    return undefined;
  }

  loopsOf(kernel) {
    return this.data.loops?.[kernel.loops];
  }

  get milliseconds() {
    return this.data.summary?.run_ms ?? this.kernels.reduce((sum, kernel) => sum + (kernel.milliseconds ?? 0), 0);
  }
}

// The nodes so that each follows what it reads, and otherwise as they came.
function orderOf(inputs) {
  const order = [];
  const done = new Set();
  for (const start of inputs.keys()) {
    const stack = [[start, 0]];
    while (stack.length) {
      const top = stack[stack.length - 1];
      const [id, next] = top;
      const sources = inputs.get(id);
      if (done.has(id)) stack.pop();
      else if (next < sources.length) {
        ++top[1];
        if (inputs.has(sources[next]) && !done.has(sources[next]) && stack.length <= inputs.size)
          stack.push([sources[next], 0]);
      } else {
        done.add(id);
        order.push(id);
        stack.pop();
      }
    }
  }
  return order;
}

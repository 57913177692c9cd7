import type { Glyph } from "../../parts/state.tsx";

export interface GraphNode {
  readonly id: string;
  readonly title: string;
  readonly note: string;
  /** Undefined: it is not known. */
  readonly state: Glyph | undefined;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
}

export interface PlacedNode extends GraphNode {
  readonly x: number;
  readonly y: number;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  /** The path of each edge, and its start node. */
  readonly edges: readonly { readonly key: string; readonly from: string; readonly path: string }[];
}

export const NODE = { width: 150, height: 44 } as const;
const GAP = { x: 36, y: 28 } as const;
/** Room for the borders of the boxes. */
const MARGIN = 1;
/** How often the order within the layers is improved. More rounds change nothing visible. */
const SWEEPS = 4;

/**
 * Lays out an acyclic graph from left to right: each node is right of its predecessors, and near them. For small graphs, layers
 * and the mean position of the neighbours are enough. Dagre begins with the same.
 */
export function layOut(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Layout {
  const before = neighbours(edges, ({ from, to }) => [to, from]);
  const after = neighbours(edges, ({ from, to }) => [from, to]);
  const layers = toLayers(nodes, before, after);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isForward = sweep % 2 === 0;
    const order = isForward ? layers : layers.toReversed();
    for (const [index, layer] of order.entries()) {
      if (index > 0) sortByNeighbours(layer, order[index - 1] ?? [], isForward ? before : after);
    }
  }
  const rows = Math.max(...layers.map(({ length }) => length));
  const height = rows * (NODE.height + GAP.y) - GAP.y;
  const placed = layers.flatMap((layer, column) => {
    const top = (height - (layer.length * (NODE.height + GAP.y) - GAP.y)) / 2;
    return layer.map((node, row) => ({
      ...node,
      x: MARGIN + column * (NODE.width + GAP.x),
      y: MARGIN + top + row * (NODE.height + GAP.y),
    }));
  });
  const at = new Map(placed.map((node) => [node.id, node]));
  return {
    width: layers.length * (NODE.width + GAP.x) - GAP.x + 2 * MARGIN,
    height: height + 2 * MARGIN,
    nodes: placed,
    edges: edges.flatMap(({ from, to }) => {
      const [one, other] = [at.get(from), at.get(to)];
      return one && other ? [{ key: `${from} ${to}`, from, path: curve(one, other) }] : [];
    }),
  };
}

type Neighbours = ReadonlyMap<string, readonly string[]>;

function neighbours(
  edges: readonly GraphEdge[],
  pick: (edge: GraphEdge) => readonly [string, string],
): Neighbours {
  const found = new Map<string, string[]>();
  for (const edge of edges) {
    const [id, other] = pick(edge);
    found.set(id, [...(found.get(id) ?? []), other]);
  }
  return found;
}

/** The layer of a node is one more than the highest layer of its predecessors. */
function toLayers(nodes: readonly GraphNode[], before: Neighbours, after: Neighbours): GraphNode[][] {
  const known = new Set(nodes.map(({ id }) => id));
  const open = new Map(
    nodes.map(({ id }) => [id, (before.get(id) ?? []).filter((each) => known.has(each)).length]),
  );
  const layerOf = new Map<string, number>();
  const ready = nodes.filter(({ id }) => open.get(id) === 0).map(({ id }) => id);
  for (const id of ready) {
    const own = (layerOf.get(id) ?? 0) + 1;
    for (const next of after.get(id) ?? []) {
      layerOf.set(next, Math.max(layerOf.get(next) ?? 0, own));
      open.set(next, (open.get(next) ?? 0) - 1);
      if (open.get(next) === 0) ready.push(next);
    }
  }
  const layers: GraphNode[][] = [];
  for (const node of nodes) {
    const index = layerOf.get(node.id) ?? 0;
    while (layers.length <= index) layers.push([]);
    layers[index]?.push(node);
  }
  return layers;
}

function sortByNeighbours(layer: GraphNode[], other: readonly GraphNode[], nearby: Neighbours): void {
  const rows = new Map(other.map(({ id }, row) => [id, row]));
  const weight = new Map(
    layer.map(({ id }, row) => {
      const known = (nearby.get(id) ?? []).flatMap((each) => rows.get(each) ?? []);
      return [id, known.length === 0 ? row : known.reduce((sum, each) => sum + each, 0) / known.length];
    }),
  );
  layer.sort((one, another) => (weight.get(one.id) ?? 0) - (weight.get(another.id) ?? 0));
}

function curve(from: PlacedNode, to: PlacedNode): string {
  const [left, right] = [from.x + NODE.width, to.x];
  const [start, end] = [from.y + NODE.height / 2, to.y + NODE.height / 2];
  const middle = (left + right) / 2;
  return `M${left} ${start}C${middle} ${start} ${middle} ${end} ${right} ${end}`;
}

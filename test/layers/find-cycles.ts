/** For each group of nodes that reach each other, at least one way from a node back to itself. */
export function findCycles(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const walk = (node: string, path: readonly string[]): void => {
    const at = path.indexOf(node);
    if (at !== -1) cycles.push([...path.slice(at), node]);
    if (at !== -1 || done.has(node)) return;
    for (const next of edges.get(node) ?? []) walk(next, [...path, node]);
    done.add(node);
  };
  for (const node of edges.keys()) walk(node, []);
  return cycles;
}

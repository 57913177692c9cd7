import fc from "fast-check";
import { expect, test } from "vitest";
import { layOut, NODE } from "./graph-layout.ts";

const node = (id: string) => ({ id, title: id, note: "", state: "queued" as const });

test("who comes first stands left, and a diamond is one", () => {
  const edges = ["ab", "ac", "bd", "cd"].map(([from = "", to = ""]) => ({ from, to }));
  const { nodes, width, height } = layOut([..."dcba"].map(node), edges);
  const at = Object.fromEntries(nodes.map(({ id, x, y }) => [id, { x, y }]));
  expect(at["a"]?.x).toBeLessThan(at["b"]?.x ?? 0);
  expect(at["b"]?.x).toBe(at["c"]?.x);
  expect(at["c"]?.x).toBeLessThan(at["d"]?.x ?? 0);
  expect(at["a"]?.y).toBe(at["d"]?.y);
  expect([width, height]).toEqual([3 * NODE.width + 2 * 36 + 2, 2 * NODE.height + 28 + 2]);
});

test("whatever the graph, every edge leads to the right and no two nodes overlap", () => {
  const graphs = fc.integer({ min: 1, max: 20 }).chain((count) =>
    fc.record({
      count: fc.constant(count),
      pairs: fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), { maxLength: 40 }),
    }),
  );
  fc.assert(
    fc.property(graphs, ({ count, pairs }) => {
      // From the smaller to the larger: no circles, as the server has none.
      const unique = new Set(
        pairs.filter(([a, b]) => a !== b).map(([a, b]) => `${Math.min(a, b)} ${Math.max(a, b)}`),
      );
      const edges = [...unique].map((pair) => ({
        from: pair.split(" ")[0] ?? "",
        to: pair.split(" ")[1] ?? "",
      }));
      const { nodes } = layOut(
        Array.from({ length: count }, (_, n) => node(String(n))),
        edges,
      );
      const at = new Map(nodes.map((each) => [each.id, each]));
      expect(nodes).toHaveLength(count);
      expect(new Set(nodes.map(({ x, y }) => `${x} ${y}`)).size).toBe(count);
      for (const { from, to } of edges) expect(at.get(from)?.x).toBeLessThan(at.get(to)?.x ?? 0);
    }),
  );
});

import { expect, test } from "vitest";
import { nodeState } from "./node.ts";

test.each([
  [{ dead: false, draining: false, isRenewed: true }, "alive"],
  [{ dead: false, draining: true, isRenewed: true }, "draining"],
  [{ dead: false, draining: true, isRenewed: false }, "lost"],
  [{ dead: true, draining: false, isRenewed: true }, "lost"],
])("a node with %j is %s", (signs, state) => {
  expect(nodeState(signs)).toBe(state);
});

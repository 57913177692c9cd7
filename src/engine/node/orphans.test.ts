import { expect, test } from "vitest";
import { Orphans } from "./orphans.ts";

const held = [
  { seq: 1, token: 11 },
  { seq: 2, token: 12 },
];

const knowsNone = () => false;

test("a task that this node does not know is an orphan when it is seen a second time", () => {
  const orphans = new Orphans();
  const exchanges = { begun: 3, ended: 3 };
  expect(orphans.check({ held, knows: knowsNone, exchanges })).toEqual([]);
  expect(orphans.check({ held, knows: (token) => token === 12, exchanges })).toEqual([{ seq: 1, token: 11 }]);
});

test("not while an exchange is open that may have brought it or may be ending it", () => {
  const orphans = new Orphans();
  orphans.check({ held, knows: knowsNone, exchanges: { begun: 4, ended: 3 } });
  expect(orphans.check({ held, knows: knowsNone, exchanges: { begun: 4, ended: 3 } })).toEqual([]);
  expect(orphans.check({ held, knows: knowsNone, exchanges: { begun: 5, ended: 4 } })).toEqual(held);
});

test("an attempt that was known in between counts as seen for the first time", () => {
  const orphans = new Orphans();
  const exchanges = { begun: 1, ended: 1 };
  orphans.check({ held, knows: knowsNone, exchanges });
  orphans.check({ held, knows: () => true, exchanges });
  expect(orphans.check({ held, knows: knowsNone, exchanges })).toEqual([]);
});

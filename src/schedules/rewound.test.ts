import { expect, test } from "vitest";
import { rewound } from "./rewound.ts";

const schedule = { rule: { kind: "every", everyMs: 10, tz: "UTC" }, anchorAt: 0 } as const;

function row(firstDueAt: number, dueAt: number, started: boolean) {
  return { firstDueAt, dueAt, moments: (dueAt - firstDueAt) / 10 + 1, started };
}

test("a run keeps its own due time alone, and the past due times get a row", () => {
  const own = { firstDueAt: 100, dueAt: 100, moments: 1 };
  expect(rewound(row(10, 100, true), schedule, 35)).toEqual({
    row: own,
    rest: { firstDueAt: 10, dueAt: 30, moments: 3 },
  });
  expect(rewound(row(10, 100, true), schedule, 9)).toEqual({ row: own, rest: null });
  expect(rewound(row(100, 100, true), schedule, 9)).toEqual({ row: own, rest: null });
});

test("a row without a run keeps past due times, and is deleted if it has none", () => {
  const kept = (dueAt: number, moments: number) => ({ row: { firstDueAt: 10, dueAt, moments }, rest: null });
  expect(rewound(row(10, 100, false), schedule, 35)).toEqual(kept(30, 3));
  expect(rewound(row(10, 100, false), schedule, 10)).toEqual(kept(10, 1));
  expect(rewound(row(40, 100, false), schedule, 35)).toEqual({ row: null, rest: null });
});

test("of a row from before the rule was changed, only the first due time is known", () => {
  const changed = { ...schedule, anchorAt: 20 };
  expect(rewound(row(10, 100, false), changed, 35).row).toEqual({ firstDueAt: 10, dueAt: 10, moments: 1 });
});

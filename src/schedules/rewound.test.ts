import { expect, test } from "vitest";
import { rewound } from "./rewound.ts";

const schedule = { rule: { kind: "every", everyMs: 10, tz: "UTC" }, anchorAt: 0 } as const;

function row(firstDueAt: number, dueAt: number, started: boolean) {
  return { firstDueAt, dueAt, moments: (dueAt - firstDueAt) / 10 + 1, started };
}

test("a run keeps its own due time and those that have come", () => {
  expect(rewound(row(10, 100, true), schedule, 35)).toEqual({ firstDueAt: 10, dueAt: 100, moments: 4 });
  expect(rewound(row(10, 100, true), schedule, 9)).toEqual({ firstDueAt: 100, dueAt: 100, moments: 1 });
  expect(rewound(row(100, 100, true), schedule, 9)).toEqual({ firstDueAt: 100, dueAt: 100, moments: 1 });
});

test("a row that started nothing keeps what has come, and goes where nothing has", () => {
  expect(rewound(row(10, 100, false), schedule, 35)).toEqual({ firstDueAt: 10, dueAt: 30, moments: 3 });
  expect(rewound(row(10, 100, false), schedule, 10)).toEqual({ firstDueAt: 10, dueAt: 10, moments: 1 });
  expect(rewound(row(40, 100, false), schedule, 35)).toMatchObject({ moments: 0 });
});

test("a clock that is set back twice takes back what the first time had left", () => {
  const once = { ...rewound(row(10, 100, true), schedule, 55), started: true };
  expect(once).toMatchObject({ moments: 6 });
  expect(rewound(once, schedule, 35)).toMatchObject({ moments: 4 });
  expect(rewound(once, schedule, 75)).toMatchObject({ moments: 6 });
});

test("of a row from before the rule was changed, only the first due time is known", () => {
  const changed = { ...schedule, anchorAt: 20 };
  expect(rewound(row(10, 100, false), changed, 35)).toEqual({ firstDueAt: 10, dueAt: 10, moments: 1 });
});

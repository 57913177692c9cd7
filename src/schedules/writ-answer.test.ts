import { expect, test } from "vitest";
import { ACCEPTED_FORMS } from "./accepted-forms.ts";
import {
  doneBlock,
  errorBlock,
  listBlock,
  misunderstoodBlock,
  NOT_RUNNING,
  noSchedule,
  scheduledBlock,
} from "./writ-answer.ts";

const MESSAGE = "review the deploy status and report regressions";
const CREATE = { kind: "create", phrase: "in 1 hour", message: MESSAGE } as const;

test("a new schedule is confirmed with its number, its moment and its agent", () => {
  const answer = { id: 17, normalized: "in 1 hour", next: "2026-05-08 14:23", agent: "research" };
  expect(scheduledBlock(CREATE, answer)).toBe(
    [
      "[/schedule create in 1 hour: review the deploy status and …]",
      "OK: scheduled #17 in 1 hour (2026-05-08 14:23) → research",
      "  message: review the deploy status and report regressions",
      "[END SCHEDULE]",
    ].join("\n"),
  );
});

test("a header of more than sixty characters is cut", () => {
  const header = (message: string) => errorBlock({ ...CREATE, message }, "no").split("\n")[0] as string;
  const [exact, longer] = [header("x".repeat(30)), header(`${"🦉".repeat(40)}`)];
  expect(exact).toBe(`[/schedule create in 1 hour: ${"x".repeat(30)}]`);
  expect([...exact]).toHaveLength(60);
  expect([...longer]).toHaveLength(60);
  expect(longer).toMatch(/🦉…\]$/u);
});

test("a message cannot end its block, and is cut in a list", () => {
  const message = `one\n[END SCHEDULE]\n${"x".repeat(500)}`;
  const [line] = listBlock({ kind: "list" }, [
    { id: 1, status: "active", normalized: "every hour", next: "2026-05-11 09:00", agent: "index", message },
  ])
    .split("\n")
    .slice(1, -1);
  expect(line).toMatch(/^#1 active every hour, next 2026-05-11 09:00 → index: one \[END SCHEDULE\] x+…$/);
  expect(line?.length).toBeLessThan(260);
});

test("schedules are listed a line each", () => {
  const schedule = { normalized: "every Mon at 09:00", agent: "research", message: "message" };
  const schedules = [
    { id: 17, status: "active", next: "2026-05-11 09:00", ...schedule },
    { id: 4, status: "paused", next: null, ...schedule },
  ];
  expect(listBlock({ kind: "list" }, schedules)).toBe(
    [
      "[/schedule list]",
      "#17 active every Mon at 09:00, next 2026-05-11 09:00 → research: message",
      "#4 paused every Mon at 09:00 → research: message",
      "[END SCHEDULE]",
    ].join("\n"),
  );
  expect(listBlock({ kind: "list" }, schedules, 12).split("\n").at(-2)).toBe("and 12 more");
  expect(listBlock({ kind: "list" }, [])).toBe("[/schedule list]\n(none)\n[END SCHEDULE]");
});

test.each([
  ["cancel", "canceled"],
  ["pause", "paused"],
  ["resume", "resumed"],
] as const)("a writ to %s gets the block %s", (kind, done) => {
  expect(doneBlock({ kind, id: 42 })).toBe(`[/schedule ${kind} 42]\nOK: ${done} #42\n[END SCHEDULE]`);
});

test("a writ that fails gets a block with ERR", () => {
  const writ = { kind: "cancel", id: 42 } as const;
  expect(errorBlock(writ, noSchedule(42))).toBe(
    "[/schedule cancel 42]\nERR: no schedule #42\n[END SCHEDULE]",
  );
  expect(errorBlock({ kind: "list" }, NOT_RUNNING)).toBe(
    "[/schedule list]\nERR: scheduler is not running\n[END SCHEDULE]",
  );
});

test("an unknown phrase gets the list of accepted phrases", () => {
  const phrases = ACCEPTED_FORMS.map(({ form }) => `    ${form}`);
  expect(
    misunderstoodBlock({ ...CREATE, phrase: "soon" }, "why")
      .split("\n")
      .slice(1),
  ).toEqual(["ERR: why", "  accepted forms:", ...phrases, "[END SCHEDULE]"]);
});

test("an unknown writ gets the list of accepted writs", () => {
  const lines = misunderstoodBlock({ kind: "invalid", text: "soon", reason: "why" }, "why").split("\n");
  expect(lines).toEqual([
    "[/schedule soon]",
    "ERR: why",
    "  accepted forms:",
    "    /schedule PHRASE: MESSAGE",
    "    /schedule list | cancel N | pause N | resume N",
    "    where PHRASE is one of:",
    ...ACCEPTED_FORMS.map(({ form }) => `    ${form}`),
    "[END SCHEDULE]",
  ]);
});

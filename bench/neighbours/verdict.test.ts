import { describe, expect, test } from "vitest";
import { formatNeighbours } from "./report.ts";
import { goalOf, missedBy, quietValues, type Scene } from "./verdict.ts";

const QUIET: Scene = {
  name: "quiet",
  victim: {
    submitMs: [10, 10, 10, 20],
    listMs: [2],
    startMs: [50],
    scheduleMs: [5, 8],
    callbackMs: [6],
    refused: 0,
    refusal: null,
  },
  attacker: null,
  deaths: 0,
  peakRssMib: 200,
};

const BASE = quietValues([QUIET]);

function attacked(changes: Partial<Scene["victim"]>, others: Partial<Scene> = {}): Scene {
  const attacker = { accepted: 7, refused: 5, unanswered: 0 };
  return { ...QUIET, name: "reads", attacker, victim: { ...QUIET.victim, ...changes }, ...others };
}

describe("what an attack is held to", () => {
  test("is three times the quiet p99", () => {
    expect(goalOf("submit p99", { "submit p99": 20 })).toEqual({ below: 60 });
    expect(missedBy(attacked({ submitMs: [59] }), BASE)).toEqual([]);
    expect(missedBy(attacked({ submitMs: [10, 61] }), BASE)).toEqual(["submit p99"]);
  });

  test("is never less than what any other program on the machine causes", () => {
    expect(goalOf("list p99", { "list p99": 2 })).toEqual({ below: 25 });
    expect(goalOf("callback p99", { "callback p99": 6 })).toEqual({ below: 100 });
  });

  test("is a quarter of a second for requests, however slow they are when quiet", () => {
    expect(goalOf("list p99", { "list p99": 200 })).toEqual({ below: 250 });
  });

  test("is half a second for the latest run of the schedule, however few were in time", () => {
    expect(missedBy(attacked({ scheduleMs: [3, 499] }), BASE)).toEqual([]);
    expect(missedBy(attacked({ scheduleMs: [3, 3, 3, 501, 3] }), BASE)).toEqual(["schedule late"]);
  });

  test("is no refusal, no death and less than a GiB", () => {
    expect(missedBy(attacked({ refused: 1 }), BASE)).toEqual(["refused"]);
    expect(missedBy(attacked({}, { deaths: 1, peakRssMib: 1_024 }), BASE)).toEqual(["memory", "deaths"]);
  });

  test("is missed where nothing is left to measure", () => {
    expect(missedBy(attacked({ callbackMs: [] }), BASE)).toEqual(["callback p99"]);
  });

  test("leaves out memory where the system does not say", () => {
    const unknown = { peakRssMib: null };
    expect(missedBy(attacked({}, unknown), quietValues([{ ...QUIET, ...unknown }]))).toEqual([]);
  });

  test("goes by the best quiet figures, and never by those of an attack", () => {
    const again = { ...QUIET, victim: { ...QUIET.victim, submitMs: [30], listMs: [1] } };
    const base = quietValues([QUIET, attacked({ submitMs: [0.1] }), again]);
    expect([base["submit p99"], base["list p99"]]).toEqual([20, 1]);
  });
});

describe("the table", () => {
  test("shows each attack beside quiet, with the ratio, the attacker's refusals and a verdict", () => {
    const refusal = '429 {"code":"queue_full"}';
    const scenes = [
      QUIET,
      attacked({}),
      attacked({ listMs: [100], refused: 2, refusal }, { name: "far-tasks" }),
    ];
    const [header, , quiet, ok, missed, , refusalLine] = formatNeighbours("SQLite", scenes).split("\n");
    expect(header).toMatch(/^\| SQLite .* attacker: accepted \| refused \| unanswered \| verdict/);
    expect(quiet).toMatch(/^\| quiet .*\| +20\.00 ms \|/);
    expect(quiet).not.toContain("×");
    expect(ok).toMatch(/^\| reads .* 7 \| +5 \| +0 \| ok +\|$/);
    expect(missed).toMatch(/^\| far-tasks .*100\.00 ms \(50 ×\).*\| MISSED: list p99, refused \|$/);
    expect(refusalLine).toBe(`far-tasks: the victim's first refusal was: ${refusal}`);
  });

  test("says when the machine was too busy: quiet alone misses the goals", () => {
    const said = /too busy to trust the verdicts: quiet alone misses list p99, schedule late\./;
    const busy = { ...QUIET, victim: { ...QUIET.victim, listMs: [26], scheduleMs: [600] } };
    expect(formatNeighbours("SQLite", [QUIET, attacked({}), busy])).toMatch(said);
    expect(formatNeighbours("SQLite", [QUIET, attacked({ listMs: [900] }), QUIET])).not.toContain("too busy");
  });
});

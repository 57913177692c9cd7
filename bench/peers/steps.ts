import type { Unit } from "../figure.ts";
import type { MeasureName } from "./measures/index.ts";
import type { PeerGoals } from "./queue.ts";
import type { PeerSizes } from "./sizes.ts";

/** One measurement of every system, and the rows that it gives. */
export interface Step {
  readonly measure: MeasureName;
  /** How much waits in the storage before; null: it is empty. */
  readonly backlog: number | null;
  /** Whether systems are held to fifty at once, or may have as many as suits them. */
  readonly tuning: "at50" | "best";
  readonly rows: readonly Row[];
}

export interface Row {
  readonly name: string;
  /** Which of the values of a run. */
  readonly value: string;
  readonly unit: Unit;
  readonly better: "more" | "less";
  /** The goal that applies; null: it is only reported. */
  readonly goal: keyof PeerGoals | null;
}

/** What is quiet first: loading leaves the servers with work to do. */
export function stepsOf({ backlogs, fairness }: PeerSizes): Step[] {
  const { big, smallAgents, each } = fairness;
  const small = `${smallAgents} agents with ${count(each)} each`;
  return [
    step("idle", [
      row("CPU when idle, own process", "own", "percent"),
      row("CPU when idle, with its server", "all", "percent", "others"),
    ]),
    step("latency", [row("pick-up, p50", "p50", "ms", "latency"), row("pick-up, p99", "p99", "ms")]),
    step("addOne", [rate("adding one by one, 1 caller", "others")]),
    step("addConcurrent", [rate("adding one by one, 50 callers", "others")]),
    step("addMany", [rate("adding 1,000 per call", "others")]),
    step("drain", [
      rate("drain, 50 at once", "drain"),
      row("the same, CPU of a task, with its server", "cpuUs", "µs"),
    ]),
    step("fairness", [
      row(`behind ${count(big)} of one agent: ${small}, p50`, "p50", "ms", "others"),
      row("the same, the last of them", "last", "ms", "others"),
    ]),
    ...backlogs.map(
      (backlog): Step => ({
        measure: "drainWindow",
        backlog,
        tuning: "best",
        rows: [rate(`drain, ${count(backlog)} waiting`, "drain")],
      }),
    ),
  ];
}

function step(measure: MeasureName, rows: readonly Row[]): Step {
  return { measure, backlog: null, tuning: "at50", rows };
}

function rate(name: string, goal: keyof PeerGoals): Row {
  return { name, value: "perSecond", unit: "tasks/s", better: "more", goal };
}

function row(name: string, value: string, unit: Unit, goal: keyof PeerGoals | null = null): Row {
  return { name, value, unit, better: "less", goal };
}

function count(value: number): string {
  return value.toLocaleString("en");
}

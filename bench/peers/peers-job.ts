import { type Figure, figure, shareOf } from "../figure.ts";
import type { Findings, Setting } from "../job.ts";
import { type Contender, tune } from "./contender.ts";
import { installPeers } from "./install.ts";
import type { System } from "./queue.ts";
import { formatLine, formatPeers, type Line } from "./report.ts";
import { type Row, stepsOf } from "./steps.ts";
import { CLASSES, SYSTEMS } from "./systems/index.ts";
import { type Outcome, takeStep } from "./take-step.ts";

/** Rota beside what people would use instead: same machine, same run, same work. */
export async function peersJob(setting: Setting): Promise<Findings> {
  // So that the servers that were started here are ended with it.
  process.once("SIGTERM", () => process.exit(1));
  const versions = installPeers();
  const { contenders, notRun } = await tuneAll(versions !== null, setting);
  const lines: Line[] = [];
  for (const step of stepsOf(setting.sizes.peers)) {
    console.error(step.rows[0]?.name);
    const outcomes = await takeStep(step, contenders, setting);
    const taken = step.rows.map((row) => lineOf(row, outcomes));
    for (const line of taken) console.error(formatLine(line));
    lines.push(...taken);
    for (const [name, outcome] of outcomes) {
      if ("failure" in outcome) notRun.push(`${name}, ${step.rows[0]?.name}: ${outcome.failure}`);
    }
  }
  const text = formatPeers({ lines, contenders, notRun, versions: versions ?? new Map() });
  const figures = lines.flatMap(({ figures, comparisons }) => [...figures.values(), ...comparisons.values()]);
  return { figures, text };
}

async function tuneAll(
  isInstalled: boolean,
  setting: Setting,
): Promise<{ contenders: Contender[]; notRun: string[] }> {
  const contenders: Contender[] = [];
  const notRun: string[] = [];
  console.error("choosing settings");
  for (const system of SYSTEMS) {
    try {
      if (system.package !== null && !isInstalled) throw new Error("`npm ci` failed in bench/peers");
      contenders.push(await tune(system, setting));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      notRun.push(`${system.name}: ${reason}`);
      console.error(`  ${system.name} is not run: ${reason}`);
    }
  }
  return { contenders, notRun };
}

/** The figures of a row, and how Rota compares with each peer of its class. */
function lineOf(row: Row, outcomes: ReadonlyMap<string, Outcome>): Line {
  const runsOf = ({ name }: System): number[] | null => {
    const outcome = outcomes.get(name);
    if (outcome === undefined || "failure" in outcome) return null;
    return outcome.runs.map((values) => values[row.value] ?? Number.NaN);
  };
  const figures = new Map<string, Figure>();
  const comparisons = new Map<string, Figure>();
  for (const { rota, peers } of CLASSES) {
    const own = runsOf(rota);
    for (const system of [rota, ...peers]) {
      const runs = runsOf(system);
      if (runs === null) continue;
      figures.set(system.name, figure(`${row.name}: ${system.name}`, row.unit, runs));
      if (own === null || system === rota) continue;
      const atLeast = row.goal === null ? null : system.goals[row.goal];
      const sides = row.better === "more" ? { of: own, against: runs } : { of: runs, against: own };
      const name = `${row.name}: ${rota.name} against ${system.name}`;
      const share = shareOf(name, { ...sides, goal: atLeast === null ? null : { atLeast } });
      comparisons.set(system.name, { ...share, unit: "times" });
    }
  }
  return { name: row.name, figures, comparisons };
}

import type { EmptyStorage } from "../empty-storage.ts";
import type { Setting } from "../job.ts";
import { type Contender, measureOnce } from "./contender.ts";
import { emptyStorageOf } from "./empty-storage-of.ts";
import { windowTasks } from "./measures/drain.ts";
import type { Values } from "./measures/measure.ts";
import { runMeasure } from "./run-process.ts";
import type { Step } from "./steps.ts";

/** Every turn of a step by one system, or why there are none. */
export type Outcome = { readonly runs: readonly Values[] } | { readonly failure: string };

/** Takes a measurement of every system, then of every one again, and so on, so that all meet the same machine. */
export async function takeStep(
  step: Step,
  contenders: readonly Contender[],
  setting: Setting,
): Promise<Map<string, Outcome>> {
  const entrants = await Promise.all(contenders.map((contender) => enter(step, contender, setting)));
  try {
    for (const entrant of entrants) await entrant.prepare();
    for (let turn = 1; turn <= setting.turns; turn++) {
      for (const entrant of entrants) await entrant.run(turn);
    }
    return new Map(entrants.map(({ name, outcome }) => [name, outcome()]));
  } finally {
    for (const entrant of entrants) await entrant.leave();
  }
}

interface Entrant {
  readonly name: string;
  prepare(): Promise<void>;
  run(turn: number): Promise<void>;
  outcome(): Outcome;
  leave(): Promise<void>;
}

/** What goes wrong with one is its own failure, and the others go on. */
async function enter(step: Step, contender: Contender, setting: Setting): Promise<Entrant> {
  const { measure, backlog, rows } = step;
  const { system } = contender;
  const tuning = contender[step.tuning];
  const sizes = setting.sizes.peers;
  const runs: Values[] = [];
  let failure: string | null = null;
  let target: EmptyStorage | null = null;
  const attempt = async (action: () => Promise<void>) => {
    if (failure !== null) return;
    try {
      await action();
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
      console.error(`  ${system.name}: ${failure}`);
    }
  };
  const orders = { system: system.name, tuning, sizes };
  return {
    name: system.name,
    prepare: () =>
      attempt(async () => {
        if (backlog === null) return;
        target = await emptyStorageOf(system.storage, setting)();
        const count = backlog + setting.turns * windowTasks(sizes.window);
        console.error(`  filling ${system.name} with ${count.toLocaleString("en")}`);
        await runMeasure({ ...orders, measure: "load", url: target.url, count });
        await target.settle();
      }),
    run: (turn) =>
      attempt(async () => {
        const values =
          target === null
            ? await measureOnce({ system, tuning, measure }, setting)
            : await runMeasure({ ...orders, measure, url: target.url });
        runs.push(values);
        const shown = rows.map(({ name, value }) => `${name} ${values[value]?.toFixed(2)}`);
        console.error(`  turn ${turn}: ${system.name}, ${shown.join("; ")}`);
      }),
    outcome: () => (failure === null ? { runs } : { failure }),
    leave: async () => target?.remove(),
  };
}

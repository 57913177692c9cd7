import { withStorage } from "../empty-storage.ts";
import type { Setting } from "../job.ts";
import { emptyStorageOf } from "./empty-storage-of.ts";
import type { Values } from "./measures/measure.ts";
import type { System, Tuning } from "./queue.ts";
import { runMeasure } from "./run-process.ts";
import type { Step } from "./steps.ts";

/** A system that could be started, and the settings with which it is quickest. */
export interface Contender {
  readonly system: System;
  /** The quickest of those that run fifty at once, and the quickest of all. */
  readonly at50: Tuning;
  readonly best: Tuning;
  readonly tried: readonly Trial[];
}

export interface Trial {
  readonly tuning: Tuning;
  readonly perSecond: number;
}

const AT_ONCE = 50;
/** The machine may be busy with something else for a moment: of so many, the best counts. */
const TRIALS = 2;

/** Tries what the system's documentation suggests. Throws when it cannot be started. */
export async function tune(system: System, setting: Setting): Promise<Contender> {
  const tried: Trial[] = [];
  const short = shortened(setting);
  for (const tuning of system.tunings) {
    const rates: number[] = [];
    for (let trial = 0; trial < TRIALS; trial++) {
      const { perSecond = 0 } = await measureOnce({ system, tuning, measure: "drain" }, short);
      rates.push(perSecond);
    }
    tried.push({ tuning, perSecond: Math.max(...rates) });
    console.error(`  ${system.name} with ${showTuning(tuning)}: ${Math.round(Math.max(...rates))}/s`);
  }
  const quickest = (trials: readonly Trial[]) => {
    const [first] = trials.toSorted((a, b) => b.perSecond - a.perSecond);
    if (first === undefined) throw new Error(`${system.name} has no settings to try`);
    return first.tuning;
  };
  return {
    system,
    at50: quickest(tried.filter(({ tuning }) => tuning.atOnce === AT_ONCE)),
    best: quickest(tried),
    tried,
  };
}

/** Which of them is the quickest shows soon. */
function shortened({ sizes, ...setting }: Setting): Setting {
  const { peers } = sizes;
  return { ...setting, sizes: { ...sizes, peers: { ...peers, drain: Math.ceil(peers.drain / 3) } } };
}

/** One run on an empty storage. */
export function measureOnce(
  { system, tuning, measure }: { system: System; tuning: Tuning; measure: Step["measure"] },
  setting: Setting,
): Promise<Values> {
  return withStorage(emptyStorageOf(system.storage, setting), async (target) => {
    // Whatever was there before has left its server with something to write.
    await target.settle();
    const { peers: sizes } = setting.sizes;
    return runMeasure({ system: system.name, measure, url: target.url, tuning, sizes });
  });
}

export function showTuning({ options }: Tuning): string {
  return Object.entries(options)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

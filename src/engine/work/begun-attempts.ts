import type { BegunAttempt } from "../../storage/storage.ts";
import { byTenant, type Completed, type Finish } from "./completer.ts";

/** An attempt that was held ahead and has begun. */
export interface Begun extends BegunAttempt {
  readonly tenant: string;
  readonly lane: string;
}

/** The attempts that were held ahead and have begun, until the storage knows it. */
export class BegunAttempts {
  #unreported: Begun[] = [];

  /** How many the storage does not know of yet. */
  get size(): number {
    return this.#unreported.length;
  }

  add(begun: Begun): void {
    this.#unreported.push(begun);
  }

  /**
   * Removes and returns those to report with these ends. `areAll`: no other ends wait. Otherwise only those that end in this
   * exchange: in the storage never more than `concurrency` tasks run.
   */
  take(finishes: readonly Finish[], { areAll }: { areAll: boolean }): readonly Begun[] {
    const unreported = this.#unreported;
    if (unreported.length === 0) return unreported;
    const ends = new Set(finishes.map(({ token }) => token));
    const ending = unreported.filter(({ token }) => ends.has(token));
    const lasting = unreported.filter(({ token }) => !ends.has(token));
    this.#unreported = areAll ? [] : lasting;
    return inWaves(finishes, ending, areAll ? lasting : []).sort(byTenant);
  }

  /** They could not be reported. */
  giveBack(begun: readonly Begun[]): void {
    this.#unreported = [...begun, ...this.#unreported];
  }

  /** Which of these reports have to wait: the storage writes no progress of attempts that it does not know to have begun. */
  waiting({ progress }: Completed): Completed["progress"] {
    if (this.#unreported.length === 0 || progress.length === 0) return [];
    const unreported = new Set(this.#unreported.map(({ token }) => token));
    return progress.filter(({ token }) => unreported.has(token));
  }
}

/**
 * Orders what slots had in turn, so that the log never shows more at once than there are slots: first ends what the storage knows
 * as running; then as many as that begin and end, again and again; last begin those that go on. `ending` end in this exchange.
 */
function inWaves(finishes: readonly Finish[], ending: readonly Begun[], lasting: readonly Begun[]): Begun[] {
  if (ending.length === 0) return lasting.map((begun) => ({ ...begun, wave: 1 }));
  const unreported = new Set(ending.map(({ token }) => token));
  const freed = new Map<string, number>();
  for (const { token, lane, freesSlot } of finishes)
    if (freesSlot && !unreported.has(token)) freed.set(lane, (freed.get(lane) ?? 0) + 1);
  const begun = new Map<string, number>();
  let last = 0;
  const waves = ending.map((each) => {
    const before = begun.get(each.lane) ?? 0;
    begun.set(each.lane, before + 1);
    const wave = 1 + Math.floor(before / Math.max(freed.get(each.lane) ?? 0, 1));
    last = Math.max(last, wave);
    return { ...each, wave };
  });
  return [...waves, ...lasting.map((each) => ({ ...each, wave: last + 1 }))];
}

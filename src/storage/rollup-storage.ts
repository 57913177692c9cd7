/** Statistics per minute, hour and day: one part of the contract in storage.ts. */
import type { Durations, RollupCount, RollupKind, RollupStep, RollupTime } from "../model/rollup.ts";

/** Events that are counted in one transaction: a few milliseconds of work. */
export const ROLLUP_SLICE = 4_000;
/** The same in `prune`, whose transaction holds up other writes. */
export const ROLLUP_SLICE_OF_PRUNE = 1_000;

/**
 * Counts of the event log. Each event is counted exactly once, even if several nodes count or a node crashes: one transaction
 * writes the counts and the number of the last counted event. No event is pruned before it is counted. `advance` and `prune` need
 * not wait for the disk: what a power cut undoes is counted or deleted again.
 *
 * - `submitted`: `task.created`. `started`: `task.started`, every attempt. `done`, `failed`, `cancelled`: the ends.
 * - `wait`: of first attempts, from when the task could start (acceptance or `runAt`) to the start.
 * - `run`: how long the attempt ran that ended with the task.
 * - `tokens`: in and out, of all attempts of a task, counted at its end.
 *
 * An event of a deleted task counts for `other`, and not at all if its tenant is deleted, too.
 */
export interface RollupStorage {
  /**
   * Counts about `limit` events. `events`: how many were counted; `more`: there may be others. `events` 0 with `more`: another
   * node is counting.
   */
  advance(params: { limit: number }): Promise<{ events: number; more: boolean }>;
  /**
   * Rows of a tenant from `from` on and before `to`, by time and key. `next`: the `after` of the next call; null: there are no
   * more.
   */
  read(params: ReadRollupsParams): Promise<{ rows: RollupRow[]; next: RollupCursor | null }>;
  /** The age of the oldest event that is not counted yet, in milliseconds; 0: there is none. */
  lateMs(): Promise<number>;
  /** Deletes up to `limit` rows that have been kept for long enough. `more`: call again. */
  prune(params: { limit: number }): Promise<{ more: boolean }>;
}

export interface ReadRollupsParams {
  readonly tenant: string;
  readonly kind: RollupKind;
  readonly step: RollupStep;
  readonly from: number;
  readonly to: number;
  readonly after?: RollupCursor;
  readonly limit: number;
}

export interface RollupCursor {
  readonly at: number;
  readonly key: string;
}

/** The statistics of one lane or agent in one minute, hour or day. */
export interface RollupRow
  extends Readonly<Record<RollupCount, number>>,
    Readonly<Record<RollupTime, Durations>> {
  /** When it begins. */
  readonly at: number;
  /** The lane or the agent; `OTHER_KEYS`: all that have no row of their own. */
  readonly key: string;
}

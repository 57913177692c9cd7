import type { ScheduleName } from "../storage/storage.ts";

export interface RunNowParams extends ScheduleName {
  /** `force`: out of turn; `due`: only what has come of its moments. */
  readonly mode: "force" | "due";
}

/** What came of it. A run whose agent is missing counts as one, since it left its row. */
export type RanNow =
  | { readonly ran: true; readonly runId: number }
  | { readonly ran: false; readonly reason: "not-due" | "already-running" };

/** What the library asks of it. */
export interface ScheduleRunner {
  /** A schedule is due at this moment of the storage's clock: call it when one was made or changed here. */
  expect(at: number): void;
  /** Runs a schedule now, whether or not this process fires any by itself. Null: there is no such schedule. */
  runNow(params: RunNowParams): Promise<RanNow | null>;
}

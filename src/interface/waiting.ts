import type { WaitingCode } from "../model/explanation.ts";

export type { WaitingCode } from "../model/explanation.ts";

/** Why work waits: each waiting task is counted once, by the first reason that holds it. */
export interface WaitingReasons {
  /** Most first, fifty at most; the rest is `other`. */
  readonly reasons: readonly WaitingReason[];
  /** All tasks that wait. */
  readonly total: number;
}

export interface WaitingReason {
  /** As `explain` has them, or `held_back`, or `other`. */
  readonly code: WaitingCode;
  /** With what a lane holds. */
  readonly lane?: string;
  /** With what holds the tasks of one agent. */
  readonly agentId?: string;
  readonly count: number;
}

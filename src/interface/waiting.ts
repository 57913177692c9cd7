import type { WaitingCode } from "../model/explanation.ts";

export type { WaitingCode } from "../model/explanation.ts";

/** Counts of waiting tasks: each task counts once, by the first reason that holds it. */
export interface WaitingReasons {
  /** At most 50, the reason with the most tasks first. Tasks with other reasons are counted as `other`. */
  readonly reasons: readonly WaitingReason[];
  /** All waiting tasks. */
  readonly total: number;
}

export interface WaitingReason {
  /** A reason code of `explain`, or `held_back`, or `other`. */
  readonly code: WaitingCode;
  /** The lane, where a lane holds the tasks. */
  readonly lane?: string;
  /** The agent, where its limit holds the tasks. */
  readonly agentId?: string;
  readonly count: number;
}

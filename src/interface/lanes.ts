import type { LANE } from "../model/input/lane-input.ts";
import type { InputOf, OrNull } from "../model/input/schema.ts";

/**
 * Lanes: named pools of slots that do not wait for each other. `tasks`, `main`, `subagent`, `team` and `cron` always exist; the
 * configuration and `put` change them and create more.
 */
export interface Lanes {
  /** Lists lanes, each with its numbers of running and waiting tasks. */
  list(): Promise<LaneList>;
  /**
   * Sets the concurrency of a lane, on all nodes and from now on. Creates the lane if it does not exist. Throws
   * `invalid_field`, and `conflict` for a lane that the configuration describes.
   */
  put(name: string, input: LaneInput): Promise<LaneInfo>;
  /**
   * Cancels all waiting tasks of a lane, with the error `lane_cleared`. Running tasks continue, and tasks submitted meanwhile
   * stay. Returns how many were cancelled. Throws `not_found`.
   */
  clear(name: string): Promise<{ readonly cancelled: number }>;
}

export type LaneInput = OrNull<InputOf<typeof LANE.fields>>;

export interface LaneInfo {
  readonly name: string;
  /** How many of its tasks the responding process runs at once; 0: it leaves them to other nodes. */
  readonly concurrency: number;
  /** How many run at once over all nodes; null: no limit beyond the sum of the processes. */
  readonly total: number | null;
  /** Over all nodes. */
  readonly running: number;
  /** All tasks that have not started, over all nodes. */
  readonly waiting: number;
  /** How long the oldest task that could start has waited; null: no task could start. */
  readonly oldestWaitMs: number | null;
}

export interface LaneList {
  readonly lanes: readonly LaneInfo[];
}

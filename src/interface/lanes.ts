/**
 * Lanes: named pools of concurrency that do not wait for each other. `tasks`, `main`, `subagent`, `team` and `cron` are
 * always there; the configuration and `put` change them and make more.
 */
export interface Lanes {
  /** With how much runs and waits in each. */
  list(): Promise<LaneList>;
  /**
   * Says how much of a lane runs at once, on all nodes and from now on, and makes it if there is none. Throws
   * `invalid_field`, and `conflict` for a lane that the configuration describes.
   */
  put(name: string, input: LaneInput): Promise<LaneInfo>;
  /**
   * Ends all that waits in a lane as `cancelled`, with the error `lane_cleared`; what runs goes on, and what comes meanwhile
   * stays. Answers how many that were. Throws `not_found`.
   */
  clear(name: string): Promise<{ readonly cancelled: number }>;
}

export interface LaneInput {
  /** How many of its tasks each process runs at once; 0: none. */
  readonly concurrency: number;
  /** How many run at once over all nodes; null or left out: no bound beyond the sum of the processes. */
  readonly total?: number | null;
}

export interface LaneInfo {
  readonly name: string;
  /** How many of its tasks the process that was asked runs at once; 0: it leaves them to others. */
  readonly concurrency: number;
  /** How many run at once over all nodes; null: no bound beyond the sum of the processes. */
  readonly total: number | null;
  /** Over all nodes. */
  readonly running: number;
  /** Everything that has not started, for whatever reason, over all nodes. */
  readonly waiting: number;
  /** How long the task waits that could start and came first; null: none could. */
  readonly oldestWaitMs: number | null;
}

export interface LaneList {
  readonly lanes: readonly LaneInfo[];
}

import type { BulkAction, BulkState } from "../model/bulk.ts";
import type { TaskState } from "../model/task-state.ts";
import type { TaskFilter } from "./tasks.ts";

/** One action on many tasks: cancel, retry or delete all that fit a filter. It is carried out in the background. */
export interface Bulks {
  /**
   * How many tasks it would cover, and a few of them; nothing is changed. Throws `invalid_field`.
   *
   * @example
   * const { matched } = await rota.bulks.preview({ action: "cancel", filter: { state: "queued", agentId: "research" } });
   */
  preview(input: BulkInput): Promise<BulkPreview>;
  /**
   * Covers the tasks that were accepted before this call, to retry or delete those that had ended before it, each at most once.
   * Durable once this returns: it goes on after a restart. Throws `invalid_field`, and `conflict` while 10 of the tenant run.
   */
  start(input: BulkInput): Promise<StartedBulk>;
  /** How far it is. Throws `not_found`. */
  get(bulkId: string): Promise<Bulk>;
  /** Ends it after the slice under way; what was done stays done. Throws `not_found`. */
  abort(bulkId: string): Promise<Bulk>;
}

/** The same in this process, which knows whose request it is. */
export interface LocalBulks extends Bulks {
  start(input: BulkInput, options?: { readonly by?: string | null }): Promise<StartedBulk>;
}

export interface BulkInput {
  readonly action: BulkAction;
  /** Up to 1000 tasks; either these or a `filter`. */
  readonly ids?: readonly string[];
  /** As for `tasks.list`; an empty one is refused. Of the states, those that the action has something to do with count. */
  readonly filter?: BulkFilter;
  /** How many tasks at most; 100 000 unless told, which is the most. */
  readonly limit?: number;
}

export type BulkFilter = Omit<TaskFilter, "order" | "limit" | "cursor">;

export interface BulkPreview {
  readonly matched: number;
  /** Whether there are more than `limit`. */
  readonly capped: boolean;
  /** Up to five of them. */
  readonly sample: readonly BulkSample[];
}

export interface BulkSample {
  readonly taskId: string;
  readonly agentId: string;
  readonly lane: string;
  readonly state: TaskState;
  readonly createdAt: string;
}

export interface StartedBulk {
  readonly bulkId: string;
  readonly matched: number;
}

export interface Bulk {
  readonly bulkId: string;
  readonly action: BulkAction;
  /** As it was asked for; null: tasks were named. */
  readonly filter: Readonly<Record<string, unknown>> | null;
  /** How many fitted when it was asked for. */
  readonly matched: number;
  readonly done: number;
  /** Tasks that no longer existed. */
  readonly failed: number;
  /** Tasks that the action could not be applied to: what a single request would be refused with `conflict`. */
  readonly skipped: number;
  readonly state: BulkState;
  /** The id of the key that asked for it; null: there was none. */
  readonly by: string | null;
}

import type { BulkAction, BulkState } from "../model/bulk.ts";
import type { BULK } from "../model/input/bulk-input.ts";
import type { InputOf } from "../model/input/schema.ts";
import type { SELECTING_FIELDS } from "../model/input/task-filter-input.ts";
import type { TaskState } from "../model/task-state.ts";

/** Bulk actions: cancel, retry or delete all tasks that match a filter, in the background. */
export interface Bulks {
  /**
   * Counts the tasks that match, and returns a few of them. Changes nothing. Throws `invalid_field`.
   *
   * @example
   * const { matched } = await rota.bulks.preview({ action: "cancel", filter: { state: "queued", agentId: "research" } });
   */
  preview(input: BulkInput): Promise<BulkPreview>;
  /**
   * Acts on the tasks accepted before this call (`retry` and `delete`: ended before it), each at most once. Durable once this
   * returns: it continues after a restart. Throws `invalid_field`, and `conflict` while 10 of the tenant run.
   */
  start(input: BulkInput): Promise<StartedBulk>;
  /** Returns its progress. Throws `not_found`. */
  get(bulkId: string): Promise<Bulk>;
  /** Ends it after the current slice; nothing is undone. Throws `not_found`. */
  abort(bulkId: string): Promise<Bulk>;
}

/** The same within this process, where the caller passes the id of the API key. */
export interface LocalBulks extends Bulks {
  start(input: BulkInput, options?: { readonly by?: string | null }): Promise<StartedBulk>;
}

export type BulkInput = InputOf<typeof BULK.fields>;

export type BulkFilter = InputOf<typeof SELECTING_FIELDS>;

export interface BulkPreview {
  readonly matched: number;
  /** Whether more than `limit` tasks match. */
  readonly capped: boolean;
  /** Up to five of the tasks that match. */
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
  /** The filter of the request; null: the request had `ids`. */
  readonly filter: Readonly<Record<string, unknown>> | null;
  /** Tasks that matched at the time of the request. */
  readonly matched: number;
  readonly done: number;
  /** Tasks that no longer existed. */
  readonly failed: number;
  /** Tasks for which a single request would be refused with `conflict`. */
  readonly skipped: number;
  readonly state: BulkState;
  /** The id of the API key of the request; null: the request had none. */
  readonly by: string | null;
}

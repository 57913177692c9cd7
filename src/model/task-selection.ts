import type { TaskState } from "./task-state.ts";

/** Selects tasks of a tenant. Fields that are left out match every task. Times are milliseconds since 1970. */
export interface TaskSelection {
  readonly agent?: string;
  readonly states?: readonly TaskState[];
  readonly priority?: number;
  /** Instead of `priority`: this priority and more urgent ones, which have lower numbers. */
  readonly priorityMax?: number;
  readonly batch?: string;
  readonly lane?: string;
  readonly session?: string;
  readonly schedule?: number;
  /** The first task of a tree, which is not part of the selection itself. */
  readonly root?: string;
  /** The id of a task or the start of one, the id of a batch, or the `key` of a task in its batch. */
  readonly search?: string;
  /** Created at this time or later; with the order `completed`: ended. */
  readonly from?: number;
  /** Created before this time; with the order `completed`: ended. */
  readonly to?: number;
}

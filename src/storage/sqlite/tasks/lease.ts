import type { HeldState } from "../../../model/task-state.ts";
import type { TaskOrigin } from "../../storage.ts";

/** What the end of an attempt needs from its start. */
export interface Lease {
  readonly task_seq: number;
  readonly token: number;
  readonly node: string;
  readonly line: number;
  readonly state: HeldState;
  readonly attempt: number;
  /** When it was claimed, or when it began if its holder reported that. */
  readonly started_at: number;
  readonly calls_back: 0 | 1;
  readonly has_dependants: 0 | 1;
  readonly batch: string | null;
  readonly session: number | null;
  readonly origin: TaskOrigin;
  readonly concurrency_key: string | null;
}

export const LEASE_COLUMNS =
  "task_seq, token, node, line, state, attempt, started_at, calls_back, has_dependants, batch, session, origin, concurrency_key";

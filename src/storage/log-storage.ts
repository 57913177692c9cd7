/** Log lines of executors: one part of the contract in storage.ts. */
import type { TaskLogLevel } from "../model/task-log.ts";

export interface TaskLogStorage {
  /**
   * Stores log lines of attempts, and deletes the oldest pieces of an attempt while it has more than `TASK_LOG_MAX`. Idempotent
   * for each piece. Lines of deleted tasks are dropped.
   */
  append(params: { pieces: readonly LogPiece[] }): Promise<void>;
  /** Up to `limit` lines after the one with the number `after`, oldest first. Null: the tenant, or the agent, has no such task. */
  read(params: ReadLogParams): Promise<LogPage | null>;
}

/** The size of one piece: small, since an attempt that logs too much loses whole pieces. */
export const LOG_PIECE_MAX = { lines: 100, bytes: 16_384 } as const;

/** Consecutive log lines of one attempt. */
export interface LogPiece {
  readonly taskSeq: number;
  readonly attempt: number;
  /** The number of its last line. */
  readonly lastN: number;
  /** The size that the lines count for. */
  readonly bytes: number;
  readonly lines: readonly LoggedLine[];
}

export interface LoggedLine {
  readonly at: number;
  readonly level: TaskLogLevel;
  readonly text: string;
}

export interface ReadLogParams {
  readonly tenant: string;
  readonly agent?: string;
  readonly taskId: string;
  /** Left out: the newest attempt with log lines. */
  readonly attempt?: number | undefined;
  readonly after: number;
  readonly limit: number;
}

export interface LogPage {
  /** Null: there are no log lines. */
  readonly attempt: number | null;
  readonly lines: readonly (LoggedLine & { readonly n: number })[];
  /** How many lines of this attempt were deleted. */
  readonly dropped: number;
  readonly more: boolean;
}

/** A piece as the databases keep it. */
export interface StoredPiece {
  readonly lastN: number;
  readonly lines: readonly (readonly [at: number, level: TaskLogLevel, text: string])[];
}

export function piecesToPage(
  attempt: number | null,
  pieces: readonly StoredPiece[],
  { after, limit, dropped }: { readonly after: number; readonly limit: number; readonly dropped: number },
): LogPage {
  const all = pieces.flatMap(({ lastN, lines }) =>
    lines.map(([at, level, text], index) => ({ n: lastN - lines.length + 1 + index, at, level, text })),
  );
  const behind = all.filter(({ n }) => n > after);
  return { attempt, lines: behind.slice(0, limit), dropped, more: behind.length > limit };
}

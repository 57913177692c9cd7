import type { LogMark } from "../storage/storage.ts";

/** An append-only log in the storage. */
export interface LogSource<Value> {
  /** The name of its entries, as in "cannot read events". */
  readonly name: string;
  /** A page of entries after `after`, oldest first. */
  read(after: number): Promise<LogPage<Value>>;
  /** `newest`: the highest number ever assigned; 0: none. `oldest`: the oldest entry that still exists, or `newest` + 1. */
  range(): Promise<{ readonly oldest: number; readonly newest: number }>;
  /** The mark that identifies the entry with this number; null: there is none. */
  mark(seq: number): Promise<LogMark | null>;
  /** The number of the last entry written no later than `at`; 0: none. */
  lastUntil(at: number): Promise<number>;
  /** Whether entries may be deleted while older ones remain. */
  readonly leavesHoles: boolean;
}

export interface LogPage<Value> {
  readonly entries: readonly LogEntry<Value>[];
  /** Whether there may be more entries right after these. */
  readonly more: boolean;
  /** Everything up to this number has been read: continue after it. */
  readonly upTo: number;
  /** An upper bound of the entries read for this page. */
  readonly looked: number;
  /** The mark of the entry `after`, right before the page; null: there is none. */
  readonly mark: LogMark | null;
}

export interface LogEntry<Value> {
  readonly seq: number;
  readonly value: Value;
  /** Its approximate size. */
  readonly bytes: number;
  readonly mark: LogMark;
}

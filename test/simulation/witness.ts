import type { StorageSignal } from "../../src/storage/storage.ts";
import type { History } from "../chaos/history.ts";

/** An operation of the storage, when it happened. */
interface Operation {
  readonly process: string;
  readonly operation: string;
  readonly params: unknown;
  readonly answer: unknown;
}

/** Sees what passes between processes and the storage, and tells what agrees with nothing else that is known. */
export class Witness {
  readonly #now: () => number;
  /** By process and token: when it first heard that the attempt holds nothing, as a place in the order of what agents saw. */
  readonly #fences = new Map<string, number>();
  /** By node: the process that declared it dead. */
  readonly #declaredDead = new Map<string, string>();

  constructor(now: () => number) {
    this.#now = now;
  }

  heard(process: string, signal: StorageSignal): void {
    if (signal.kind !== "fenced") return;
    for (const token of signal.tokens) {
      const key = `${process} ${token}`;
      if (!this.#fences.has(key)) this.#fences.set(key, this.#now());
    }
  }

  carriedOut({ process, operation, params, answer }: Operation): void {
    if (operation !== "nodes.markDead" || answer !== true) return;
    this.#declaredDead.set((params as { node: string }).node, process);
  }

  /** Attempts that a process began although it had heard that they hold nothing any more. */
  begunAfterFence({ calls, events }: History): string[] {
    const tokens = new Map(
      events.flatMap(({ type, taskId, attempt, seq }) =>
        type === "task.started" ? [[`${taskId} ${attempt}`, seq]] : [],
      ),
    );
    return calls
      .filter(({ taskId, attempt, process, began }) => {
        const heardAt = this.#fences.get(`${process} ${tokens.get(`${taskId} ${attempt}`)}`);
        return heardAt !== undefined && began > heardAt;
      })
      .map(({ taskId, attempt, process }) => `${taskId}: ${process} began attempt ${attempt} all the same`);
  }

  /** Attempts that had been answered, and that their own process then gave up for lost; `except` may do so. */
  forgotten({ calls, tasks }: History, except: readonly string[]): string[] {
    return calls
      .filter(({ taskId, attempt, process, answer }) => {
        const granted = tasks.get(taskId)?.attempts[attempt - 1];
        if (answer === null || except.includes(process) || granted?.outcome !== "lost") return false;
        return this.#declaredDead.get(granted.node) === process;
      })
      .map(({ taskId, attempt, process }) => `${taskId}: ${process} forgot the answer to attempt ${attempt}`);
  }
}

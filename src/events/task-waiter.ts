import type { Clock } from "../model/clock.ts";
import { RotaError } from "../model/errors.ts";
import { waitedInVain } from "../model/input/wait-input.ts";
import { ownRecord, type Scope } from "../model/scope.ts";
import type { TaskRecord } from "../model/task-record.ts";
import { isTerminal } from "../model/task-state.ts";
import { isStatus, lookAtTask } from "../storage/look-at-task.ts";
import type { EventLog } from "./event-log.ts";

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** Called with the stored size of the ended task before it is read, if it is large. The read waits for its promise. */
  readonly onSize?: ((bytes: number) => Promise<void> | void) | undefined;
}

/** Waits for tasks to end. All waiting callers share one listener: an event costs one look-up, even with thousands of them. */
export class TaskWaiter {
  readonly #eventLog: EventLog;
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<() => void>>();
  #stopListening: (() => void) | null = null;
  #closed = false;

  constructor({ eventLog, clock }: { eventLog: EventLog; clock: Clock }) {
    this.#eventLog = eventLog;
    this.#clock = clock;
  }

  /** Resolves with the task once it has ended. */
  async wait(scope: Scope, id: string, options: WaitOptions = {}): Promise<TaskRecord> {
    const giveUp = this.#giveUp(options);
    let look = () => {};
    const undo = this.#notice(id, () => look());
    try {
      await Promise.race([this.#eventLog.ready, giveUp.promise]);
      for (;;) {
        const ended = new Promise<void>((resolve) => {
          look = resolve;
        });
        const { tasks } = this.#eventLog.storage;
        const name = { tenant: scope.tenant, id };
        // A large task is read once, when it has ended.
        const found = ownRecord(scope, await Promise.race([lookAtTask(tasks, name), giveUp.promise]));
        if (found === null) throw notFound();
        if (isTerminal(found.state)) {
          if (!isStatus(found)) return found;
          await options.onSize?.(found.bytes);
          const task = ownRecord(scope, await Promise.race([tasks.get(name), giveUp.promise]));
          if (task === null) throw notFound();
          // It may have been retried meanwhile.
          if (isTerminal(task.state)) return task;
        }
        if (this.#closed) throw new RotaError("draining", "this node stopped before the task had ended");
        await Promise.race([ended, giveUp.promise]);
      }
    } finally {
      undo();
      giveUp.undo();
    }
  }

  #notice(id: string, look: () => void): () => void {
    const looks = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, looks.add(look));
    this.#stopListening ??= this.#eventLog.listen(
      (event) => {
        if (isTerminal(event.state)) for (const waiting of this.#waiting.get(event.taskId) ?? []) waiting();
      },
      {
        onClose: () => {
          this.#closed = true;
          this.#lookAgain();
        },
        // The task may be gone, or may have ended without an event here.
        onRestored: () => this.#lookAgain(),
      },
    );
    return () => {
      looks.delete(look);
      if (looks.size === 0) this.#waiting.delete(id);
      if (this.#waiting.size > 0) return;
      this.#stopListening?.();
      this.#stopListening = null;
    };
  }

  #lookAgain(): void {
    for (const looks of this.#waiting.values()) for (const waiting of looks) waiting();
  }

  /** A promise that rejects at the caller's timeout or abort, and never resolves. */
  #giveUp({ signal, timeoutMs }: WaitOptions): { promise: Promise<never>; undo: () => void } {
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    const onAbort = () => reject(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer =
      timeoutMs === undefined
        ? undefined
        : this.#clock.setTimer(timeoutMs, () => reject(waitedInVain(timeoutMs)));
    return {
      promise,
      undo: () => {
        signal?.removeEventListener("abort", onAbort);
        timer?.cancel();
      },
    };
  }
}

function notFound(): RotaError {
  return new RotaError("not_found", "task not found");
}

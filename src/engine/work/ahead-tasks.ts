import type { Clock } from "../../model/clock.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import type { ClaimedTask } from "../../storage/storage.ts";
import { AheadQueue } from "./ahead-queue.ts";
import { BegunAttempts } from "./begun-attempts.ts";
import type { Completer } from "./completer.ts";
import type { LaneSlots } from "./lane-slots.ts";
import type { RunningBytes } from "./running-bytes.ts";

/** A task that was held ahead for this long goes back to the queue, for any node that has a free slot. */
const HELD_MAX_MS = 500;

const NO_SLOT = "not started: no slot of its node became free in time";

export interface AheadTasksOptions {
  readonly slots: LaneSlots;
  readonly memory: RunningBytes;
  readonly completer: Completer;
  readonly clock: Clock;
  /** The storage's time. */
  readonly storageNow: () => number;
  readonly run: (claimed: ClaimedTask) => void;
}

/** Holds tasks that were claimed ahead of free slots. They begin when slots become free, or go back to the queue. */
export class AheadTasks {
  /** Those that have begun, and that the storage does not know of yet. */
  readonly begun = new BegunAttempts();
  readonly #options: AheadTasksOptions;
  readonly #queue = new AheadQueue();

  constructor(options: AheadTasksOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#queue.size;
  }

  sizeOf(lane: string): number {
    return this.#queue.sizeOf(lane);
  }

  has(token: number): boolean {
    return this.#queue.has(token);
  }

  /** The attempts of all that are held. */
  get tokens(): number[] {
    return this.#queue.tokens();
  }

  hold(claimed: ClaimedTask): void {
    this.#options.memory.hold(claimed.task.tenant, claimed.bytes);
    this.#queue.add(claimed, this.#options.clock.monotonic());
  }

  /** Begins the first tasks of these lanes, as long as slots are free. Left out: of all lanes. */
  begin(lanes: Iterable<string> = this.#queue.lanes): void {
    for (const lane of lanes) this.#beginIn(lane);
  }

  #beginIn(lane: string): void {
    const { slots, storageNow, run } = this.#options;
    while (this.#queue.sizeOf(lane) > 0 && slots.hasFree(lane)) {
      const held = this.#released(this.#queue.shift(lane));
      if (held === undefined) return;
      const { token, task, bytes } = held;
      const startedAt = storageNow();
      if (task.deadline !== null && startedAt >= task.deadline) {
        this.putBack(held, NO_SLOT);
        continue;
      }
      slots.took(task, { ahead: true });
      this.begun.add({ seq: task.seq, token, startedAt, tenant: task.tenant, lane });
      run({ token, bytes, task: begunRecord(task, startedAt) });
    }
  }

  /** Puts all of them back into the queue. */
  putBackAll(error: string): void {
    for (const token of this.#queue.tokens()) this.#putBackHeld(token, error);
  }

  /** Puts those back that were held for too long. Returns their lanes. */
  putBackLate(): string[] {
    const late = this.#queue.heldSince(this.#options.clock.monotonic() - HELD_MAX_MS);
    for (const { token } of late) this.#putBackHeld(token, NO_SLOT);
    return late.map(({ task }) => task.lane);
  }

  /** Milliseconds until the oldest was held for too long; Infinity: none is held. */
  lateInMs(now: number): number {
    return Math.max(this.#queue.oldestAt + HELD_MAX_MS - now, 0);
  }

  /** Puts a task back into the queue that was claimed ahead and is not held. */
  putBack(claimed: ClaimedTask, error: string): void {
    this.#options.slots.droppedAhead(claimed.task);
    this.#options.completer.putBack(claimed, error, { freesSlot: false });
  }

  /** An attempt has lost its lease. Returns whether it was held. */
  drop(token: number): boolean {
    const held = this.#released(this.#queue.remove(token));
    if (held !== undefined) this.#options.slots.droppedAhead(held.task);
    return held !== undefined;
  }

  #putBackHeld(token: number, error: string): void {
    const held = this.#released(this.#queue.remove(token));
    if (held !== undefined) this.putBack(held, error);
  }

  /** It is no longer held: neither is its memory. */
  #released<Held extends ClaimedTask>(held: Held | undefined): Held | undefined {
    if (held !== undefined) this.#options.memory.release(held.task.tenant, held.bytes);
    return held;
  }
}

/** The record of a task that was held ahead and begins now. */
function begunRecord(task: TaskRecord, startedAt: number): TaskRecord {
  const attempts = task.attempts.map((attempt, index) =>
    index === task.attempts.length - 1 ? { ...attempt, startedAt } : attempt,
  );
  return { ...task, state: "running", startedAt: task.startedAt ?? startedAt, attempts };
}

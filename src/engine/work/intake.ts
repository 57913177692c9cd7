import { pause } from "../../clock/pause.ts";
import type { Clock } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";
import { type Backoff, backoffMs } from "../../services/backoff.ts";
import { isStorageAway } from "../../services/storage-away.ts";
import { canClaim } from "../../storage/insert-claim.ts";
import type {
  AdmissionLimits,
  InsertedTask,
  NewBatch,
  NewTask,
  Storage,
  SubmitBounds,
} from "../../storage/storage.ts";
import type { ClaimWithInsert } from "./dispatcher.ts";

/** Tasks written in one transaction. The rest of a batch may come on top. */
const INSERT_MAX = 500;
/** Turns of the event loop to wait for more tasks. A larger group costs less per task, but callers should not wait long. */
const GATHER_TURNS_MAX = 4;
/** Tasks that may wait to be written. More pile up only if the storage is slower than the callers for long. */
const BUFFER_MAX = 20_000;
/** An insert whose connection was lost is retried with the same ids. After this many tries the caller gets the error. */
const TRIES_MAX = 5;
/** A storage that hangs takes long to fail. After this time there are no further tries. */
const GIVE_UP_MS = 10_000;
const RETRY: Backoff = { firstMs: 50, maxMs: 1_000 };

const NO_LANES: ReadonlySet<string> = new Set();

export interface IntakeOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly random: () => number;
  readonly limits: () => AdmissionLimits;
  /** Called when tasks are on their way to the storage, so that a claim can follow right behind the insert. */
  readonly onSent: (tasks: readonly NewTask[]) => void;
  /** Lets an insert of these tasks claim for free slots in the same transaction; null: it does not. */
  readonly claimFor: (tasks: readonly NewTask[]) => ClaimWithInsert | null;
  /** Called after each commit, before the promises of the callers resolve. `claimedIn`: the lanes that it has claimed from; left out: none. */
  readonly onInserted: (
    tasks: readonly NewTask[],
    answers: readonly InsertedTask[],
    claimedIn?: ReadonlySet<string>,
  ) => void;
}

interface Pending {
  readonly task: NewTask;
  /** The batch it is written with, in one transaction or not at all; null: none. */
  readonly batch: NewBatch | null;
  resolve(inserted: InsertedTask): void;
  reject(error: unknown): void;
}

/**
 * Inserts tasks in groups. Tasks submitted in one turn of the event loop share a transaction, and so do tasks submitted
 * while another group is written. A single task waits for one turn only.
 */
export class Intake {
  readonly #options: IntakeOptions;
  #buffer: Pending[] = [];
  #writing: Promise<void> | null = null;
  /** The result of the last task. Tasks are written in order. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /**
   * Inserts the tasks of a bounded caller, all or none, in a transaction of their own. Throws `quota_exceeded` if they would exceed
   * the bounds.
   */
  async addBounded(
    tasks: readonly NewTask[],
    bounds: SubmitBounds,
    batch: NewBatch | null = null,
  ): Promise<InsertedTask[]> {
    this.#makeRoom(tasks.length);
    const inserting = this.#insertWithRetries(tasks, batch === null ? [] : [batch], bounds);
    this.#last = Promise.allSettled([this.#last, inserting]);
    const { answers, claimedIn } = await inserting;
    this.#options.onInserted(tasks, answers, claimedIn);
    return answers;
  }

  /** Resolves with the result of the insert, once the task is durable. */
  add(task: NewTask): Promise<InsertedTask> {
    this.#makeRoom(1);
    return this.#enqueue(task, null);
  }

  /**
   * Adds all of the tasks to the buffer, in order, or none. With a batch, they also become durable together, or none of them
   * does.
   */
  addMany(tasks: readonly NewTask[], batch: NewBatch | null = null): Promise<InsertedTask[]> {
    this.#makeRoom(tasks.length);
    return Promise.all(tasks.map((task) => this.#enqueue(task, batch)));
  }

  /** Resolves once nothing is left to be written. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  /** Resolves once all tasks submitted so far are written, or failed to be. */
  async written(): Promise<void> {
    await this.#last.catch(() => {});
  }

  #makeRoom(tasks: number): void {
    if (this.#buffer.length + tasks <= BUFFER_MAX) return;
    throw new RotaError(
      "storage_unavailable",
      "the storage does not keep up: too many tasks wait to be written",
      {
        details: { waiting: this.#buffer.length, max: BUFFER_MAX },
      },
    );
  }

  #enqueue(task: NewTask, batch: NewBatch | null): Promise<InsertedTask> {
    const inserted = new Promise<InsertedTask>((resolve, reject) => {
      this.#buffer.push({ task, batch, resolve, reject });
      this.#writing ??= this.#write();
    });
    this.#last = inserted;
    return inserted;
  }

  async #write(): Promise<void> {
    while (this.#buffer.length > 0) {
      await this.#gather();
      const end = cutAfter(this.#buffer, INSERT_MAX);
      const group = this.#buffer.slice(0, end);
      this.#buffer = this.#buffer.slice(end);
      await this.#insert(group);
    }
    this.#writing = null;
  }

  /** Waits for other tasks of this turn of the event loop, and of the next ones while each turn brings more. */
  async #gather(): Promise<void> {
    let seen = 0;
    for (let turns = 0; turns < GATHER_TURNS_MAX && this.#buffer.length > seen; turns += 1) {
      seen = this.#buffer.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #insert(group: readonly Pending[]): Promise<void> {
    const tasks = group.map(({ task }) => task);
    let answers: InsertedTask[];
    let claimedIn: ReadonlySet<string>;
    try {
      ({ answers, claimedIn } = await this.#insertWithRetries(tasks, batchesOf(group)));
    } catch (error) {
      return this.#insertApart(group, error);
    }
    this.#options.onInserted(tasks, answers, claimedIn);
    for (const [index, { task, resolve, reject }] of group.entries()) {
      const answer = answers[index];
      if (answer !== undefined) resolve(answer);
      else
        reject(new RotaError("storage_unavailable", `the storage did not report the outcome of ${task.id}`));
    }
  }

  /** One task that cannot be written must not fail the other tasks of its group: each half is tried on its own. */
  async #insertApart(group: readonly Pending[], error: unknown): Promise<void> {
    const middle = cutNear(group, Math.ceil(group.length / 2));
    if (middle === null || isStorageAway(error)) {
      for (const { reject } of group) reject(error);
      return;
    }
    await this.#insert(group.slice(0, middle));
    await this.#insert(group.slice(middle));
  }

  async #insertWithRetries(
    tasks: readonly NewTask[],
    batches: readonly NewBatch[],
    bounds?: SubmitBounds,
  ): Promise<{ answers: InsertedTask[]; claimedIn: ReadonlySet<string> }> {
    const { storage, limits, clock, random, onSent, claimFor } = this.#options;
    const begun = clock.monotonic();
    const more = bounds === undefined ? {} : { bounds };
    for (let tries = 1; ; tries++) {
      // An insert that is repeated may find its tasks inserted, and claimed.
      const claiming = tries === 1 && canClaim({ tasks, ...more }) ? claimFor(tasks) : null;
      try {
        const inserted = storage.tasks.insert({
          tasks,
          batches,
          limits: limits(),
          ...more,
          ...(claiming && { claim: claiming.claim }),
        });
        if (claiming === null) onSent(tasks);
        return { answers: await inserted, claimedIn: claiming?.lanes ?? NO_LANES };
      } catch (error) {
        const waitedMs = clock.monotonic() - begun;
        if (!isStorageAway(error) || tries === TRIES_MAX || waitedMs > GIVE_UP_MS) throw error;
      } finally {
        claiming?.end();
      }
      await pause(clock, backoffMs(RETRY, tries, random));
    }
  }
}

function batchesOf(group: readonly Pending[]): NewBatch[] {
  const batches = new Set(group.map(({ batch }) => batch));
  return [...batches].filter((batch) => batch !== null);
}

/** The first index from `at` on that does not split a batch. */
function cutAfter(pending: readonly Pending[], at: number): number {
  let index = Math.min(at, pending.length);
  while (index < pending.length && isInsideBatch(pending, index)) index += 1;
  return index;
}

/** An index near `at` inside the group that does not split a batch; null: there is none. */
function cutNear(group: readonly Pending[], at: number): number | null {
  let index = cutAfter(group, at);
  if (index < group.length) return index;
  index = at;
  while (index > 0 && isInsideBatch(group, index)) index -= 1;
  return index > 0 && index < group.length ? index : null;
}

function isInsideBatch(pending: readonly Pending[], index: number): boolean {
  const batch = pending[index]?.batch ?? null;
  return batch !== null && batch === pending[index - 1]?.batch;
}

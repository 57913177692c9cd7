import type { Clock } from "../model/clock.ts";
import { RotaError } from "../model/errors.ts";
import { type Backoff, backoffMs } from "../services/backoff.ts";
import { isStorageAway } from "../services/storage-away.ts";
import type { AdmissionLimits, InsertedTask, NewTask, Storage } from "../storage/storage.ts";

/** Tasks written in one transaction. */
const INSERT_MAX = 500;
/** A larger handful costs less for each, but nobody should wait long for others to come. */
const GATHER_TURNS_MAX = 4;
/** Tasks that may wait to be written. More only pile up when the storage is slower than its users for long. */
const BUFFER_MAX = 20_000;
/** An insert whose connection was lost is repeated under the same ids; after this many tries the caller is told. */
const TRIES_MAX = 5;
/** A storage that hangs takes long to fail: then there is no time for further tries. */
const GIVE_UP_MS = 10_000;
const RETRY: Backoff = { firstMs: 50, maxMs: 1_000 };

export interface IntakeOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly random: () => number;
  readonly limits: () => AdmissionLimits;
  /** Told after each commit, before the callers are. */
  readonly onInserted: (tasks: readonly NewTask[], answers: readonly InsertedTask[]) => void;
}

interface Pending {
  readonly task: NewTask;
  resolve(inserted: InsertedTask): void;
  reject(error: unknown): void;
}

/**
 * Takes tasks in. Those that arrive in one turn of the event loop share a transaction, and so do those that arrive
 * while one is being written; a task that comes alone waits for nobody.
 */
export class Intake {
  readonly #options: IntakeOptions;
  #buffer: Pending[] = [];
  #writing: Promise<void> | null = null;

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Resolves once the task is durable, with what became of it. */
  add(task: NewTask): Promise<InsertedTask> {
    this.#makeRoom(1);
    return this.#enqueue(task);
  }

  /** In order, all or none of them held to be written. */
  addMany(tasks: readonly NewTask[]): Promise<InsertedTask[]> {
    this.#makeRoom(tasks.length);
    return Promise.all(tasks.map((task) => this.#enqueue(task)));
  }

  /** Resolves once nothing is left to be written. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
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

  #enqueue(task: NewTask): Promise<InsertedTask> {
    return new Promise((resolve, reject) => {
      this.#buffer.push({ task, resolve, reject });
      this.#writing ??= this.#write();
    });
  }

  async #write(): Promise<void> {
    while (this.#buffer.length > 0) {
      await this.#gather();
      const batch = this.#buffer.slice(0, INSERT_MAX);
      this.#buffer = this.#buffer.slice(INSERT_MAX);
      await this.#insert(batch);
    }
    this.#writing = null;
  }

  /** Whatever else arrives in this turn of the event loop comes along; and in the next, as long as each brings more. */
  async #gather(): Promise<void> {
    let seen = 0;
    for (let turns = 0; turns < GATHER_TURNS_MAX && this.#buffer.length > seen; turns += 1) {
      seen = this.#buffer.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #insert(batch: readonly Pending[]): Promise<void> {
    const tasks = batch.map(({ task }) => task);
    let answers: InsertedTask[];
    try {
      answers = await this.#insertWithRetries(tasks);
    } catch (error) {
      return this.#insertApart(batch, error);
    }
    this.#options.onInserted(tasks, answers);
    for (const [place, { task, resolve, reject }] of batch.entries()) {
      const answer = answers[place];
      if (answer !== undefined) resolve(answer);
      else reject(new RotaError("storage_unavailable", `the storage did not say what became of ${task.id}`));
    }
  }

  /** One task that cannot be written must not take those along that merely arrived together with it. */
  async #insertApart(batch: readonly Pending[], error: unknown): Promise<void> {
    if (batch.length === 1 || isStorageAway(error)) {
      for (const { reject } of batch) reject(error);
      return;
    }
    const half = Math.ceil(batch.length / 2);
    await this.#insert(batch.slice(0, half));
    await this.#insert(batch.slice(half));
  }

  async #insertWithRetries(tasks: readonly NewTask[]): Promise<InsertedTask[]> {
    const { storage, limits, clock, random } = this.#options;
    const begun = clock.monotonic();
    for (let tries = 1; ; tries++) {
      try {
        return await storage.tasks.insert({ tasks, limits: limits() });
      } catch (error) {
        const waitedMs = clock.monotonic() - begun;
        if (!isStorageAway(error) || tries === TRIES_MAX || waitedMs > GIVE_UP_MS) throw error;
      }
      await new Promise<void>((resolve) => clock.setTimer(backoffMs(RETRY, tries, random), resolve));
    }
  }
}

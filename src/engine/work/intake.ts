import { pause } from "../../clock/pause.ts";
import type { Clock } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";
import { knownText } from "../../model/text/json-text.ts";
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
/** How long the large inputs of a transaction are together, in UTF-16 units of JSON, unless it is one task or one batch. */
const INSERT_LENGTH_MAX = 262_144;
/** Sending, storing and flushing a longer input takes some milliseconds: small tasks of other tenants do not wait for it. */
const LARGE_LENGTH = 65_536;
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
  /** The tasks of its call. */
  readonly call: readonly NewTask[];
  resolve(inserted: InsertedTask): void;
  reject(error: unknown): void;
}

/** Tasks that are written one group after the other. */
interface Queue {
  buffer: Pending[];
  writing: Promise<void> | null;
  /** The result of the last task. */
  last: Promise<unknown>;
}

/**
 * Inserts tasks in groups. Tasks submitted in one turn of the event loop share a transaction, and so do tasks submitted
 * while another group is written. A single task waits for one turn only. Tasks of a tenant are written in order. Large ones have
 * groups of their own, which small tasks of other tenants do not wait for.
 */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #small: Queue = { buffer: [], writing: null, last: Promise.resolve() };
  readonly #large: Queue = { buffer: [], writing: null, last: Promise.resolve() };
  /** How many tasks of each tenant are in the queue of large ones. */
  readonly #inLarge = new Map<string, number>();
  /** Resolves once the tasks of bounded callers are written, or failed to be. */
  #lastBounded: Promise<unknown> = Promise.resolve();

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
    const batches = batch === null ? [] : [batch];
    const inserting = this.#insertWithRetries(tasks, { batches, bounds, isOneCall: true });
    this.#lastBounded = Promise.allSettled([this.#lastBounded, inserting]);
    const { answers, claimedIn } = await inserting;
    this.#options.onInserted(tasks, answers, claimedIn);
    return answers;
  }

  /** Resolves with the result of the insert, once the task is durable. */
  add(task: NewTask): Promise<InsertedTask> {
    this.#makeRoom(1);
    const call = [task];
    return this.#enqueue({ task, batch: null, call }, this.#queueOf(call));
  }

  /**
   * Adds all of the tasks to the buffer, in order, or none. With a batch, they also become durable together, or none of them
   * does.
   */
  addMany(tasks: readonly NewTask[], batch: NewBatch | null = null): Promise<InsertedTask[]> {
    this.#makeRoom(tasks.length);
    const queue = this.#queueOf(tasks);
    return Promise.all(tasks.map((task) => this.#enqueue({ task, batch, call: tasks }, queue)));
  }

  /** Resolves once nothing is left to be written. */
  async flush(): Promise<void> {
    while (this.#small.writing !== null || this.#large.writing !== null)
      await Promise.all([this.#small.writing, this.#large.writing]);
  }

  /** Resolves once all tasks submitted so far are written, or failed to be. */
  async written(): Promise<void> {
    await Promise.allSettled([this.#small.last, this.#large.last, this.#lastBounded]);
  }

  #makeRoom(tasks: number): void {
    const waiting = this.#small.buffer.length + this.#large.buffer.length;
    if (waiting + tasks <= BUFFER_MAX) return;
    throw new RotaError(
      "storage_unavailable",
      "the storage does not keep up: too many tasks wait to be written",
      {
        details: { waiting, max: BUFFER_MAX },
      },
    );
  }

  /** The queue of tasks of one tenant. Small ones go behind large ones of their tenant, which they must not overtake. */
  #queueOf(tasks: readonly NewTask[]): Queue {
    for (const task of tasks) {
      const isBehindLarge = this.#inLarge.size > 0 && this.#inLarge.has(task.tenant);
      if (isBehindLarge || largeLength(task) > 0) return this.#large;
    }
    return this.#small;
  }

  #enqueue(
    { task, batch, call }: Pick<Pending, "task" | "batch" | "call">,
    queue: Queue,
  ): Promise<InsertedTask> {
    const inserted = new Promise<InsertedTask>((resolve, reject) => {
      queue.buffer.push({ task, batch, call, resolve, reject });
      if (queue === this.#large) this.#inLarge.set(task.tenant, (this.#inLarge.get(task.tenant) ?? 0) + 1);
      queue.writing ??= queue === this.#large ? this.#writeLarge() : this.#writeSmall();
    });
    queue.last = inserted;
    return inserted;
  }

  async #writeSmall(): Promise<void> {
    const queue = this.#small;
    while (queue.buffer.length > 0) {
      await this.#gather(queue);
      await this.#insert(takeGroup(queue, INSERT_MAX));
    }
    queue.writing = null;
  }

  async #writeLarge(): Promise<void> {
    const queue = this.#large;
    while (queue.buffer.length > 0) {
      await this.#gather(queue);
      const group = takeGroup(queue, sizeOfNextGroup(queue.buffer));
      // Small tasks of the same tenants that were added before must stay ahead.
      await this.#small.last.catch(() => {});
      await this.#insert(group);
      for (const { task } of group) countDown(this.#inLarge, task.tenant);
    }
    queue.writing = null;
  }

  /** Waits for other tasks of this turn of the event loop, and of the next ones while each turn brings more. */
  async #gather(queue: Queue): Promise<void> {
    let seen = 0;
    for (let turns = 0; turns < GATHER_TURNS_MAX && queue.buffer.length > seen; turns += 1) {
      seen = queue.buffer.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #insert(group: readonly Pending[]): Promise<void> {
    const tasks = group.map(({ task }) => task);
    let answers: InsertedTask[];
    let claimedIn: ReadonlySet<string>;
    try {
      const isOneCall = group.every(({ call }) => call === group[0]?.call);
      ({ answers, claimedIn } = await this.#insertWithRetries(tasks, {
        batches: batchesOf(group),
        isOneCall,
      }));
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
    params: {
      readonly batches: readonly NewBatch[];
      readonly bounds?: SubmitBounds;
      readonly isOneCall: boolean;
    },
  ): Promise<{ answers: InsertedTask[]; claimedIn: ReadonlySet<string> }> {
    const { storage, limits, clock, random, onSent, claimFor } = this.#options;
    const begun = clock.monotonic();
    for (let tries = 1; ; tries++) {
      // An insert that is repeated may find its tasks inserted, and claimed.
      const claiming = tries === 1 && canClaim({ tasks, ...params }) ? claimFor(tasks) : null;
      try {
        const inserted = storage.tasks.insert({
          tasks,
          ...params,
          limits: limits(),
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

/** The length of its input, if that is large. Inputs of this size have been serialized when they were checked. */
function largeLength({ spec }: NewTask): number {
  const length = knownText(spec)?.length ?? 0;
  return length >= LARGE_LENGTH ? length : 0;
}

/** How many of the first tasks are written together: fewer if they are long, because other writes wait for the transaction. */
function sizeOfNextGroup(pending: readonly Pending[]): number {
  let length = 0;
  const most = Math.min(pending.length, INSERT_MAX);
  for (let index = 0; index < most; index += 1) {
    length += largeLength((pending[index] as Pending).task);
    if (length > INSERT_LENGTH_MAX) return Math.max(index, 1);
  }
  return most;
}

function takeGroup(queue: Queue, count: number): readonly Pending[] {
  const end = cutAfter(queue.buffer, count);
  const group = queue.buffer.slice(0, end);
  queue.buffer = queue.buffer.slice(end);
  return group;
}

function countDown(tenants: Map<string, number>, tenant: string): void {
  const left = (tenants.get(tenant) ?? 1) - 1;
  if (left === 0) tenants.delete(tenant);
  else tenants.set(tenant, left);
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

import type { Rota } from "../interface/rota.ts";
import { RotaError } from "../model/errors.ts";
import { optionalNumber } from "../model/field-checks.ts";
import type { Task } from "../model/task.ts";
import { Places } from "./places.ts";

/** Longer than this many proxies do not wait for an answer either. */
const WAIT_MAX_SEC = 60;
const WAITS_MAX = 10_000;

/** Requests that are answered when a task has ended. */
export class TaskWaits {
  readonly #rota: Rota;
  readonly #places: Places;
  readonly #closing = new AbortController();

  /** `max` is for tests: how many there can be at once. */
  constructor(rota: Rota, { max = WAITS_MAX }: { readonly max?: number } = {}) {
    this.#rota = rota;
    this.#places = new Places({ max, what: "requests that wait for a task" });
  }

  get size(): number {
    return this.#places.taken;
  }

  /**
   * The task once it has ended; or as it is, once `seconds` are over or the server closes. While the node drains, what
   * runs can still end, so that waiting goes on. `gone` fires when nobody is left to be told.
   */
  async wait(taskId: string, { seconds, gone }: { seconds: unknown; gone: AbortSignal }): Promise<Task> {
    const timeoutMs = checkSeconds(seconds) * 1_000;
    return this.holding(() => this.untilEnded(taskId, { timeoutMs, gone }));
  }

  /** Keeps a place as long as `work` goes on, for a request that does something first. Throws `rate_limited`. */
  async holding<T>(work: () => Promise<T>): Promise<T> {
    const giveBack = this.#places.take();
    try {
      return await work();
    } finally {
      giveBack();
    }
  }

  /** The same without a place of its own. */
  async untilEnded(
    taskId: string,
    { timeoutMs, gone }: { readonly timeoutMs: number; readonly gone: AbortSignal },
  ): Promise<Task> {
    const { tasks } = this.#rota;
    const signal = AbortSignal.any([gone, this.#closing.signal]);
    try {
      return await tasks.wait(taskId, { timeoutMs, signal });
    } catch (error) {
      if (error instanceof RotaError && error.code !== "draining") throw error;
      return await tasks.get(taskId);
    }
  }

  /** Answers everybody at once. */
  close(): void {
    this.#closing.abort();
  }
}

function checkSeconds(seconds: unknown): number {
  const range = { min: 1, max: WAIT_MAX_SEC, unit: "seconds" };
  return optionalNumber({ wait: seconds }, "wait", range) as number;
}

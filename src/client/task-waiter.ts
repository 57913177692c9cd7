import { pause } from "../clock/pause.ts";
import type { WaitOptions } from "../interface/tasks.ts";
import { RotaError } from "../model/errors.ts";
import { checkWait, waitedInVain } from "../model/input/wait-input.ts";
import type { Task } from "../model/task.ts";
import { isTerminal } from "../model/task-state.ts";
import { AbortScope } from "./abort-scope.ts";
import type { Connection } from "./connection.ts";
import { isPassing, pauseAfterFailures } from "./passing.ts";
import { NO_RETRY } from "./settings.ts";

/** How long the server is asked to hold its response. Proxies often close a connection that is silent for 60 seconds. */
const HOLD_SEC = 30;
/** Browsers allow six connections to a server for everything a page does. Elsewhere the server has limits. */
const HOLDS_MAX = "document" in globalThis || "importScripts" in globalThis ? 4 : 50;
/** How often a wait polls if no connection is free. With many such waits, all together make 20 requests a second. */
const LOOK_MS = { atLeast: 1_000, perWaiter: 50 } as const;

/**
 * Waits for tasks to end: the server holds its response until then. If the server restarts meanwhile, the wait continues until
 * its own timeout.
 */
export class TaskWaiter {
  readonly #connection: Connection;
  readonly #holdsMax: number;
  #holds = 0;
  /** Wakes polling waits, oldest first, when a connection becomes free. */
  readonly #inLine = new Set<() => void>();
  #waiting = 0;

  constructor(connection: Connection, { holdsMax = HOLDS_MAX }: { readonly holdsMax?: number } = {}) {
    this.#connection = connection;
    this.#holdsMax = holdsMax;
  }

  /** Returns the task at `path` once it has ended. Throws as the library does. */
  async wait(path: string, { signal, timeoutMs }: WaitOptions = {}): Promise<Task> {
    checkWait({ timeoutMs });
    signal?.throwIfAborted();
    const patience = new AbortScope(this.#connection.settings.clock, signal);
    if (timeoutMs !== undefined) patience.limit(timeoutMs, () => waitedInVain(timeoutMs));
    this.#waiting++;
    try {
      return await this.#untilEnded(path, patience.signal);
    } finally {
      this.#waiting--;
      patience.end();
    }
  }

  async #untilEnded(path: string, signal: AbortSignal): Promise<Task> {
    const { clock, random } = this.#connection.settings;
    for (let failures = 0; ; ) {
      try {
        const task = await this.#look(path, signal);
        if (isTerminal(task.state)) return task;
        failures = 0;
      } catch (error) {
        if (!isPassing(error)) throw error;
        await pause(clock, pauseAfterFailures(++failures, random), signal);
      }
    }
  }

  /** The task once it has ended, or its current state after a while. */
  async #look(path: string, signal: AbortSignal): Promise<Task> {
    if (this.#holds >= this.#holdsMax) return this.#lookInTurn(path, signal);
    const { clock, timeoutMs } = this.#connection.settings;
    const began = clock.monotonic();
    this.#holds++;
    try {
      const task = await this.#connection.ask<Task>({
        path,
        query: { wait: HOLD_SEC },
        signal,
        timeoutMs: HOLD_SEC * 1_000 + timeoutMs,
        retry: NO_RETRY,
      });
      // A server that does not hold its responses, such as one that is stopping, must not be polled without a pause.
      if (!isTerminal(task.state) && clock.monotonic() - began < LOOK_MS.atLeast) {
        await pause(clock, LOOK_MS.atLeast, signal);
      }
      return task;
    } catch (error) {
      if (error instanceof RotaError && error.code === "rate_limited") return this.#lookInTurn(path, signal);
      throw error;
    } finally {
      this.#holds--;
      const [first] = this.#inLine;
      first?.();
    }
  }

  async #lookInTurn(path: string, signal: AbortSignal): Promise<Task> {
    const task = await this.#connection.ask<Task>({ path, signal, retry: NO_RETRY });
    if (isTerminal(task.state)) return task;
    await this.#stayInLine(Math.max(LOOK_MS.atLeast, LOOK_MS.perWaiter * this.#waiting), signal);
    return task;
  }

  /** Ends when a connection becomes free, or when it is time to poll again. */
  async #stayInLine(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#connection.settings;
    const scope = new AbortScope(clock, signal);
    const wake = () => {
      this.#inLine.delete(wake);
      scope.abort();
    };
    this.#inLine.add(wake);
    try {
      await pause(clock, ms, scope.signal);
    } catch (error) {
      if (signal.aborted) throw error;
    } finally {
      this.#inLine.delete(wake);
      scope.end();
    }
  }
}

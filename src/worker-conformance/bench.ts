import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestAttempt, TestRegistration } from "./attempts.ts";
import { TestServer } from "./test-server.ts";
import { WorkerProcess } from "./worker-process.ts";

/** How long a worker may take to do something at once, on a busy machine. */
const AT_ONCE_MS = 10_000;
const LOOK_MS = 10;

/** Thrown if the worker does not behave. The message says what it did instead. */
export class Misbehaviour extends Error {}

export interface BenchOptions {
  readonly command: readonly string[];
  /** The variables of the worker, besides those that the test sets. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** A directory of its own, for files that the handler writes. */
  readonly folder: string;
}

/** One test server and one worker, for the test of one behaviour. */
export class Bench {
  readonly server = new TestServer();
  readonly #options: BenchOptions;
  readonly #workers: WorkerProcess[] = [];
  #files = 0;

  constructor(options: BenchOptions) {
    this.#options = options;
  }

  /** The worker that was started first. */
  get worker(): WorkerProcess {
    const [worker] = this.#workers;
    if (worker === undefined) throw new Error("the worker was not started");
    return worker;
  }

  /** Starts the server and the worker, and waits until the worker has registered and claims. */
  async start(): Promise<TestRegistration> {
    await this.server.listen();
    this.#startProcess();
    await this.until("registered and claimed", () => this.server.requests("claim").length > 0);
    return this.registration;
  }

  /** Starts the same program once more, on the same server. */
  async startAnother(): Promise<TestRegistration> {
    const before = this.server.requests("register").length;
    this.#startProcess();
    await this.until("registered a second time", () => this.server.requests("register").length > before);
    return this.registration;
  }

  #startProcess(): void {
    const { command, environment } = this.#options;
    this.#workers.push(
      new WorkerProcess(command, {
        ...environment,
        ROTA_URL: `http://127.0.0.1:${this.server.port}`,
        ROTA_KEY: this.server.key,
        ROTA_AGENTS: "conformance",
      }),
    );
  }

  get registration(): TestRegistration {
    const registration = [...this.server.registrations.values()].at(-1);
    if (registration === undefined) throw new Misbehaviour("it is not registered");
    return registration;
  }

  async end(): Promise<void> {
    for (const worker of this.#workers) await worker.kill();
    await this.server.close();
  }

  /** A file that does not exist yet, and the lines that handlers appended to it. */
  file(): { readonly path: string; readonly lines: () => number } {
    const path = join(this.#options.folder, `lines-${++this.#files}.txt`);
    return {
      path,
      lines: () => (existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean).length : 0),
    };
  }

  /** Waits until this holds. `what` continues the sentence "it never …". */
  async until(what: string, holds: () => boolean, withinMs = AT_ONCE_MS): Promise<void> {
    const began = performance.now();
    while (!holds()) {
      const ended = this.#workers.find(({ hasExited }) => hasExited);
      if (ended !== undefined && !holds()) {
        throw new Misbehaviour(`it ended (${ended.end}) before it ${what}`);
      }
      if (performance.now() - began > withinMs) {
        throw new Misbehaviour(`it never ${what} (waited ${Math.round(withinMs / 1_000)} s)`);
      }
      await sleep(LOOK_MS);
    }
  }

  async untilExit(withinMs = AT_ONCE_MS): Promise<void> {
    const began = performance.now();
    while (!this.worker.hasExited) {
      if (performance.now() - began > withinMs) {
        throw new Misbehaviour(`it did not exit within ${Math.round(withinMs / 1_000)} s`);
      }
      await sleep(LOOK_MS);
    }
    if (this.worker.exitCode !== 0)
      throw new Misbehaviour(`it ended with ${this.worker.end}, not exit code 0`);
  }

  /** Submits a task and waits until its end is recorded. */
  async work(message: string): Promise<TestAttempt> {
    const attempt = this.server.submit(message);
    await this.untilFinished(attempt);
    return attempt;
  }

  async untilFinished(attempt: TestAttempt, withinMs = AT_ONCE_MS): Promise<void> {
    await this.until(
      `finished the task \`${attempt.message.slice(0, 40)}\``,
      () => attempt.outcome !== undefined,
      withinMs,
    );
  }

  async untilHeld(attempt: TestAttempt): Promise<void> {
    await this.until(
      `claimed the task \`${attempt.message.slice(0, 40)}\``,
      () => attempt.state !== "queued",
    );
  }

  pause(ms: number): Promise<void> {
    return sleep(ms);
  }
}

/** Throws what the worker did, unless the condition holds. */
export function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Misbehaviour(otherwise);
}

import type { TaskSession } from "../../executors/executor.ts";
import type { RegisteredWorker, WorkerInput } from "../../interface/workers.ts";
import type { RotaError } from "../../model/errors.ts";
import type { Connection } from "../connection.ts";
import type { ConnectionError } from "../connection-error.ts";
import { pauseAfterFailures } from "../passing.ts";
import type { Request } from "../request.ts";
import type { WorkerSettings } from "./worker-options.ts";

/** A request that the server carried out, or why it did not. */
export type Tried<Answer> =
  | { readonly ok: true; readonly answer: Answer }
  | {
      readonly ok: false;
      readonly error: RotaError | ConnectionError;
      /** Whether the same request may work later. */
      readonly passing: boolean;
      /** How long the server asks to wait. */
      readonly retryAfterMs: number | undefined;
    };

/** The share by which a pause that the server asks for is extended at random, so that workers do not all come back at once. */
const JITTER = 0.25;
/** The first and the longest pause between tries. */
const PAUSE_MS = { first: 200, max: 5_000 } as const;

/** Sends the requests of one worker. Registers when there is no registration, also after the server has forgotten the worker. */
export class WorkerCalls {
  readonly #connection: Connection;
  readonly #settings: WorkerSettings;
  #registration: RegisteredWorker | null = null;
  #registering: Promise<Tried<RegisteredWorker>> | null = null;

  constructor(connection: Connection, settings: WorkerSettings) {
    this.#connection = connection;
    this.#settings = settings;
  }

  /** The newest registration. Null before the first. */
  get registration(): RegisteredWorker | null {
    return this.#registration;
  }

  /** One try. Several callers share it. */
  register(): Promise<Tried<RegisteredWorker>> {
    this.#registering ??= this.#register().finally(() => {
      this.#registering = null;
    });
    return this.#registering;
  }

  /** One try of a call of this worker. Rejects only with the reason of the signal. */
  async try<Answer>(
    call: "claim" | "heartbeat" | "finish" | "",
    request: Pick<Request, "method" | "body" | "signal" | "timeoutMs">,
  ): Promise<Tried<Answer>> {
    if (this.#registration === null) {
      const registered = await this.register();
      if (!registered.ok) return registered;
    }
    const registration = this.#registration as RegisteredWorker | null;
    if (registration === null) throw new Error("registered without a registration");
    const path = `/v1/workers/${encodeURIComponent(registration.workerId)}${call === "" ? "" : `/${call}`}`;
    const tried = await this.#try<Answer>({ method: "POST", path, ...request });
    if (tried.ok || (tried.error as { code?: string }).code !== "unknown_worker") return tried;
    // The same `instanceId` makes it the same worker again.
    if (this.#registration === registration) this.#registration = null;
    return { ...tried, passing: true };
  }

  /** The result of a dependency that was too large for the claim. */
  dependency(attemptToken: string, taskId: string, signal: AbortSignal): Promise<Tried<{ result: unknown }>> {
    const path = `/v1/attempts/${encodeURIComponent(attemptToken)}/dependencies/${encodeURIComponent(taskId)}`;
    return this.#try({ path, signal });
  }

  /** The session of the task of an attempt. */
  session(
    attemptToken: string,
    turns: number,
    signal: AbortSignal,
  ): Promise<Tried<{ session: TaskSession | null }>> {
    return this.#try({
      path: `/v1/attempts/${encodeURIComponent(attemptToken)}/session`,
      query: { turns },
      signal,
    });
  }

  async #register(): Promise<Tried<RegisteredWorker>> {
    const { instanceId, name, agents, slots, described } = this.#settings;
    const body: WorkerInput = { name, instanceId, agents, slots, ...described };
    const tried = await this.#try<RegisteredWorker>({ method: "POST", path: "/v1/workers", body });
    if (tried.ok) this.#registration = tried.answer;
    return tried;
  }

  async #try<Answer>(request: Request): Promise<Tried<Answer>> {
    const outcome = await this.#connection.askOnce(request);
    if (outcome.ok) return { ok: true, answer: outcome.answer as Answer };
    return { ...outcome, passing: isWorthRepeating(outcome.error) };
  }
}

/** All requests of a worker are idempotent, so every failure of the server is a reason to repeat them. */
function isWorthRepeating({ status }: RotaError | ConnectionError): boolean {
  return status === undefined || status === 408 || status === 429 || status >= 500;
}

/** The pauses of one loop: longer after each failure, and as long as the server asks for. */
export class Backoff {
  readonly #random: () => number;
  readonly #maxMs: number;
  #failures = 0;

  constructor(random: () => number, { maxMs = PAUSE_MS.max }: { readonly maxMs?: number } = {}) {
    this.#random = random;
    this.#maxMs = maxMs;
  }

  reset(): void {
    this.#failures = 0;
  }

  /** How long to wait after a failure. */
  pauseMs(retryAfterMs: number | undefined): number {
    this.#failures += 1;
    const own = pauseAfterFailures(this.#failures, this.#random, { first: PAUSE_MS.first, max: this.#maxMs });
    return retryAfterMs === undefined ? own : Math.max(own, this.asked(retryAfterMs));
  }

  /** A pause that the server asked for. */
  asked(ms: number): number {
    return ms * (1 + this.#random() * JITTER);
  }
}

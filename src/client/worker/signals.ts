import { pause } from "../../clock/pause.ts";
import type { Clock } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";
import type { Log } from "../../model/log.ts";
import type { Connection } from "../connection.ts";
import { EventConnection } from "../event-connection.ts";
import type { SseMessage } from "../sse-parser.ts";
import { Backoff, type WorkerCalls } from "./worker-calls.ts";

/** The server writes something every 15 seconds. A stream that is silent for longer is dead. */
const SILENCE_MAX_MS = 40_000;
/** Heartbeats say the same, so there is no hurry to connect again. */
const RECONNECT_MAX_MS = 30_000;

export interface SignalsOptions {
  readonly connection: Connection;
  readonly calls: WorkerCalls;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Rota has ended this attempt. */
  readonly onCancel: (attempt: { readonly taskId: string; readonly number: number }, reason: string) => void;
  readonly onDrain: () => void;
}

/**
 * Learns at once what the next heartbeat would say: which attempts are over, and that the worker should drain. A server, or a
 * proxy, without such streams is asked once; the heartbeats remain.
 */
export class Signals {
  readonly #options: SignalsOptions;
  readonly #stopped = new AbortController();

  constructor(options: SignalsOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Resolves after `stop`, or if the server has no such streams. Never rejects. */
  async run(): Promise<void> {
    const { clock, random, log } = this.#options;
    const { signal } = this.#stopped;
    const backoff = new Backoff(random, { maxMs: RECONNECT_MAX_MS });
    while (!signal.aborted) {
      try {
        await this.#read(() => backoff.reset());
      } catch (error) {
        if (signal.aborted) return;
        if (isRefused(error)) {
          log.debug({ error }, "the server has no stream of signals: heartbeats report cancels");
          return;
        }
        log.debug({ error }, "the stream of signals is lost: connecting again");
      }
      await pause(clock, backoff.pauseMs(undefined), signal).catch(() => undefined);
    }
  }

  /** Until the connection is lost. */
  async #read(onOpen: () => void): Promise<void> {
    const { connection, calls } = this.#options;
    const { registration } = calls;
    if (registration === null) return;
    const stream = await EventConnection.open(connection, {
      path: `/v1/workers/${encodeURIComponent(registration.workerId)}/signals`,
      query: {},
      silenceMaxMs: SILENCE_MAX_MS,
      after: undefined,
      signal: this.#stopped.signal,
    });
    onOpen();
    for await (const message of stream.messages()) this.#take(message);
  }

  #take({ type, data }: SseMessage): void {
    const { onCancel, onDrain } = this.#options;
    if (type === "drain") onDrain();
    if (type !== "cancel" || data === undefined) return;
    const { taskId, number, cancel } = this.#options.connection.settings.parse(data) as {
      taskId: string;
      number: number;
      cancel?: string;
    };
    onCancel({ taskId, number }, cancel ?? "unknown");
  }
}

/** An unknown worker registers again, and then has a stream. */
function isRefused(error: unknown): boolean {
  if (!(error instanceof RotaError)) return false;
  const { status, code } = error;
  return status >= 400 && status < 500 && status !== 408 && status !== 429 && code !== "unknown_worker";
}

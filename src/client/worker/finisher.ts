import { pause } from "../../clock/pause.ts";
import type { FinishAnswers, FinishInput } from "../../interface/workers.ts";
import type { Clock } from "../../model/clock.ts";
import type { Log } from "../../model/log.ts";
import { utf8Length } from "../../model/text/utf8-length.ts";
import { jsonText } from "./held-attempt.ts";
import { Backoff, type WorkerCalls } from "./worker-calls.ts";

/** How many outcomes one request carries, and about how many characters. A body may have 1 MiB. */
const GROUP_MAX = { outcomes: 100, length: 262_144 } as const;

/**
 * The largest body that a server accepts. A larger one is not sent: the server closes the connection while the worker still writes,
 * so that the worker may never read the refusal and would send it again for ever.
 */
const BODY_BYTES_MAX = 1_048_576;

/** How an attempt ended. */
export type AttemptEnd = FinishInput["attempts"][number];

export interface FinisherOptions {
  readonly calls: WorkerCalls;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** The server has answered for this attempt. */
  readonly onAnswered: (attemptToken: string) => void;
  /** Lets the next claim carry these outcomes. False: no claim can. */
  readonly carry: (carried: CarriedEnds) => boolean;
}

/** Outcomes that a claim carries. */
export interface CarriedEnds {
  readonly ends: readonly AttemptEnd[];
  /** The server has answered; null: the claim failed, and they are sent without it. */
  readonly onAnswer: (answers: FinishAnswers["attempts"] | null) => void;
}

/** Sends outcomes until the server has answered for each. Those that come while a request is open share the next one. */
export class Finisher {
  readonly #options: FinisherOptions;
  readonly #backoff: Backoff;
  readonly #waiting: { readonly end: AttemptEnd; readonly length: number }[] = [];
  readonly #gaveUp = new AbortController();
  #sending: Promise<void> | null = null;

  constructor(options: FinisherOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.random);
  }

  /** `length`: about how many characters it takes. */
  add(end: AttemptEnd, length: number): void {
    this.#waiting.push({ end, length });
    this.#sending ??= this.#sendAll();
  }

  /** Resolves once every outcome is answered. */
  async idle(): Promise<void> {
    while (this.#sending !== null) await this.#sending;
  }

  /** Sends nothing more. */
  giveUp(): void {
    this.#gaveUp.abort();
  }

  async #sendAll(): Promise<void> {
    try {
      do {
        // Handlers that end together share a request.
        await Promise.resolve();
        if (this.#gaveUp.signal.aborted) return;
        const { ends, length } = this.#nextGroup();
        if (length > GROUP_MAX.length || !(await this.#carried(ends))) await this.#send(ends);
      } while (this.#waiting.length > 0);
    } catch (error) {
      if (!this.#gaveUp.signal.aborted) throw error;
    } finally {
      // In the same turn: what is added from now on is sent by another call.
      this.#sending = null;
    }
  }

  #nextGroup(): { readonly ends: AttemptEnd[]; readonly length: number } {
    let length = 0;
    let count = 0;
    for (const each of this.#waiting) {
      if (count > 0 && (length + each.length > GROUP_MAX.length || count >= GROUP_MAX.outcomes)) break;
      length += each.length;
      count += 1;
    }
    return { ends: this.#waiting.splice(0, count).map(({ end }) => end), length };
  }

  /** Whether a claim has carried them to the server. */
  async #carried(ends: readonly AttemptEnd[]): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const onAnswer: CarriedEnds["onAnswer"] = (attempts) => {
      if (attempts !== null) this.#answered(ends, { attempts });
      resolve(attempts !== null);
    };
    return this.#options.carry({ ends, onAnswer }) && promise;
  }

  async #send(group: readonly AttemptEnd[]): Promise<void> {
    const { calls, clock, log } = this.#options;
    const { signal } = this.#gaveUp;
    for (;;) {
      const body = { attempts: group };
      if (isTooLarge(body)) return this.#refused(group, TOO_LARGE);
      const tried = await calls.try<FinishAnswers>("finish", { body, signal });
      if (tried.ok) {
        this.#backoff.reset();
        return this.#answered(group, tried.answer);
      }
      if (!tried.passing) return this.#refused(group, tried.error.message);
      log.warn({ error: tried.error }, "a finish failed; the worker sends it again");
      await pause(clock, this.#backoff.pauseMs(tried.retryAfterMs), signal);
    }
  }

  #answered(group: readonly AttemptEnd[], { attempts }: FinishAnswers): void {
    for (const { recorded, reason } of attempts) {
      if (recorded) continue;
      this.#options.log.warn(
        { reason },
        "the outcome of an attempt came too late: Rota had ended the attempt",
      );
    }
    for (const { attemptToken } of group) this.#options.onAnswered(attemptToken);
  }

  /** The server will never accept this request: the outcomes are sent one by one, and the wrong one as an error. */
  async #refused(group: readonly AttemptEnd[], why: string): Promise<void> {
    const [outcome] = group;
    if (group.length > 1 || outcome === undefined) {
      for (const each of group) await this.#send([each]);
      return;
    }
    const { attemptToken, result, usage } = outcome;
    if (result === undefined) {
      this.#options.log.error({ why }, "Rota refuses the outcome of an attempt; its lease will run out");
      return this.#options.onAnswered(attemptToken);
    }
    await this.#send([
      {
        attemptToken,
        outcome: "failed",
        error: `the result was refused: ${why}`,
        retryable: false,
        ...(usage === undefined ? {} : { usage }),
      },
    ]);
  }
}

const TOO_LARGE = `it is larger than ${BODY_BYTES_MAX} bytes with what belongs to it: store large data elsewhere, and return where`;

function isTooLarge(body: { readonly attempts: readonly AttemptEnd[] }): boolean {
  const text = jsonText(body) ?? "";
  // A character has at most three bytes.
  return text.length * 3 > BODY_BYTES_MAX && utf8Length(text) > BODY_BYTES_MAX;
}

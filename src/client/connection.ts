import { pause } from "../clock/pause.ts";
import { RotaError } from "../model/errors.ts";
import { retryAfterMs } from "../model/text/retry-after.ts";
import { AbortScope } from "./abort-scope.ts";
import { answeredError } from "./answered-error.ts";
import { answerTookTooLong, ConnectionError, connectionFailed, notRotasAnswer } from "./connection-error.ts";
import { mayHaveHappened } from "./may-have-happened.ts";
import { isRead, type Request, toFetch } from "./request.ts";
import { type Failure, RetryBudget } from "./retry-budget.ts";
import type { WholeResponse } from "./send.ts";
import type { ClientSettings } from "./settings.ts";

/** Streams open within milliseconds. One that a proxy holds back must not delay writes for longer than this. */
const HOLD_WRITES_MS = 5_000;

/** The response to one try, or why there is none. */
type Outcome = { readonly ok: true; readonly answer: unknown } | ({ readonly ok: false } & Failure);

/** Sends requests to one server, retries them where that is safe, and turns responses into values and errors. */
export class Connection {
  readonly settings: ClientSettings;
  /** Event streams that are about to open. */
  readonly #opening = new Set<Promise<unknown>>();

  constructor(settings: ClientSettings) {
    this.settings = settings;
  }

  /** The JSON or the text of the response. Throws a `RotaError` or a `ConnectionError`. */
  async ask<Answer>(request: Request): Promise<Answer> {
    request.signal?.throwIfAborted();
    const { retry, clock, random } = this.settings;
    const fetchArguments = toFetch(request, this.settings);
    if (!isRead(request) && this.#opening.size > 0) await this.#untilStreamsBegan(request.signal);

    const repeatable = request.repeatable ?? isRead(request);
    const budget = new RetryBudget({ retry: request.retry ?? retry, clock, random, repeatable });
    let mayBeDone = false;
    for (;;) {
      const outcome = await this.#try(request, fetchArguments);
      if (outcome.ok) return outcome.answer as Answer;
      const { error } = outcome;
      const done = mayBeDone && error instanceof RotaError ? request.whenDone?.(error) : undefined;
      if (done !== undefined) return done as Answer;
      const pauseMs = budget.pauseAfter(outcome);
      if (pauseMs === undefined) throw error;
      mayBeDone ||= mayHaveHappened(error);
      await pause(clock, pauseMs, request.signal);
    }
  }

  /** One try: retries are up to the caller. Rejects only with the reason of the signal. */
  askOnce(request: Request): Promise<Outcome> {
    return this.#try(request, toFetch(request, this.settings));
  }

  /** Delays writes until this promise has settled, for five seconds at most. */
  holdWrites(opening: Promise<unknown>): void {
    const forget = () => this.#opening.delete(opening);
    this.#opening.add(opening);
    opening.then(forget, forget);
  }

  /** A program that subscribes to events and then writes expects the events of that write. So the stream opens first. */
  async #untilStreamsBegan(signal: AbortSignal | undefined): Promise<void> {
    const scope = new AbortScope(this.settings.clock, signal);
    try {
      const enough = pause(this.settings.clock, HOLD_WRITES_MS, scope.signal);
      await Promise.race([Promise.allSettled(this.#opening), enough]);
    } finally {
      scope.abort();
      scope.end();
    }
  }

  /** A response whose body is read as it arrives. Resolves with its headers. Makes one try; `scope` ends it. */
  async open(request: Request, scope: AbortScope): Promise<Response> {
    const { timeoutMs, fetch } = this.settings;
    const { url, init } = toFetch(request, this.settings);
    scope.limit(timeoutMs);
    try {
      const response = await fetch(url, { ...init, signal: scope.signal });
      if (response.ok) return response;
      throw this.#failure(response, await response.text()).error;
    } catch (error) {
      throw this.#toError(error, scope, timeoutMs);
    } finally {
      scope.lift();
    }
  }

  async #try(request: Request, { url, init }: ReturnType<typeof toFetch>): Promise<Outcome> {
    const { clock, send } = this.settings;
    const timeoutMs = request.timeoutMs ?? this.settings.timeoutMs;
    const scope = new AbortScope(clock, request.signal);
    scope.limit(timeoutMs);
    try {
      const response = await send(url, { ...init, signal: scope.signal });
      const { ok, text } = response;
      if (!ok) return { ok: false, ...this.#failure(response, text) };
      return { ok: true, answer: request.text ? text : this.#json(response, text) };
    } catch (error) {
      request.signal?.throwIfAborted();
      return { ok: false, error: this.#toError(error, scope, timeoutMs), retryAfterMs: undefined };
    } finally {
      scope.end();
    }
  }

  #json({ status }: Pick<WholeResponse, "status">, text: string): unknown {
    const json = this.#parse(text);
    if (json === undefined) throw notRotasAnswer(this.settings.url, status, text);
    return json;
  }

  #failure({ status, headers }: Pick<WholeResponse, "status" | "headers">, text: string): Failure {
    const { url, clock } = this.settings;
    return {
      error: answeredError(status, this.#parse(text)) ?? notRotasAnswer(url, status, text),
      retryAfterMs: retryAfterMs(headers.get("retry-after"), clock.now()),
    };
  }

  #toError(error: unknown, scope: AbortScope, timeoutMs: number): RotaError | ConnectionError {
    if (error instanceof RotaError || error instanceof ConnectionError) return error;
    const { url } = this.settings;
    return scope.timedOut ? answerTookTooLong(url, timeoutMs) : connectionFailed(url, error);
  }

  /** Undefined if it is not JSON. */
  #parse(text: string): unknown {
    try {
      return this.settings.parse(text);
    } catch {
      return undefined;
    }
  }
}

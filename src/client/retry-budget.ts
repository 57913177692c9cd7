import type { RotaError } from "../model/errors.ts";
import type { ConnectionError } from "./connection-error.ts";
import { mayHaveHappened } from "./may-have-happened.ts";
import { isPassing } from "./passing.ts";
import type { ClientSettings } from "./settings.ts";

/** The first pause if the server sends no `Retry-After`. Each further one is twice as long. */
const BACKOFF_MS = 200;
/** The share by which a pause is extended at random, so that clients do not all come back at once. */
const JITTER = 0.25;

/** A failed request, and what is known of the cause. */
export interface Failure {
  readonly error: RotaError | ConnectionError;
  /** From the header `Retry-After`. */
  readonly retryAfterMs: number | undefined;
}

export interface RetryBudgetOptions extends Pick<ClientSettings, "retry" | "clock" | "random"> {
  /** Idempotent: sending it twice does no more than sending it once. */
  readonly repeatable: boolean;
}

/** Decides whether and when one request is retried. */
export class RetryBudget {
  readonly #options: RetryBudgetOptions;
  readonly #began: number;
  #tries = 0;

  constructor(options: RetryBudgetOptions) {
    this.#options = options;
    this.#began = options.clock.monotonic();
  }

  /** How long to wait before the next try. Undefined: no further try. */
  pauseAfter({ error, retryAfterMs }: Failure): number | undefined {
    const { retry, clock, random, repeatable } = this.#options;
    if (this.#tries >= retry.tries || !mayWorkLater(error, retryAfterMs, repeatable)) return undefined;
    const pauseMs =
      retryAfterMs === undefined
        ? BACKOFF_MS * 2 ** this.#tries * (0.5 + random() / 2)
        : retryAfterMs * (1 + random() * JITTER);
    if (clock.monotonic() - this.#began + pauseMs > retry.withinMs) return undefined;
    this.#tries++;
    return pauseMs;
  }
}

/** Rota says which errors are retryable. A request that may have been carried out is retried only if it is idempotent. */
function mayWorkLater(
  error: RotaError | ConnectionError,
  retryAfterMs: number | undefined,
  repeatable: boolean,
): boolean {
  if (mayHaveHappened(error) && !repeatable) return false;
  return isPassing(error) || (error.status === 429 && retryAfterMs !== undefined);
}

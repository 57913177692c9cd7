import type { RotaError } from "../model/errors.ts";
import type { ConnectionError } from "./connection-error.ts";
import { mayHaveHappened } from "./may-have-happened.ts";
import { isPassing } from "./passing.ts";
import type { ClientSettings } from "./settings.ts";

/** The first pause when nobody says how long to wait; each further one is twice as long. */
const BACKOFF_MS = 200;
/** How much longer than it was told a client may wait, so that not all who were sent away come back at once. */
const JITTER = 0.25;

/** A request that failed, and what is known of why. */
export interface Failure {
  readonly error: RotaError | ConnectionError;
  /** What the answer's `Retry-After` asks for. */
  readonly retryAfterMs: number | undefined;
}

export interface RetryBudgetOptions extends Pick<ClientSettings, "retry" | "clock" | "random"> {
  /** Sending it twice does no more than sending it once. */
  readonly repeatable: boolean;
}

/** Decides whether one request is sent again, and when. */
export class RetryBudget {
  readonly #options: RetryBudgetOptions;
  readonly #began: number;
  #tries = 0;

  constructor(options: RetryBudgetOptions) {
    this.#options = options;
    this.#began = options.clock.monotonic();
  }

  /** How long to wait before the next try; undefined: there is none. */
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

/** Rota says itself what may work later. What may have been carried out is sent again only if it may be repeated. */
function mayWorkLater(
  error: RotaError | ConnectionError,
  retryAfterMs: number | undefined,
  repeatable: boolean,
): boolean {
  if (mayHaveHappened(error) && !repeatable) return false;
  return isPassing(error) || (error.status === 429 && retryAfterMs !== undefined);
}

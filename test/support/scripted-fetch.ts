/** One request that the client sent. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: unknown;
  readonly signal: AbortSignal;
}

export type Answerer = (request: SentRequest) => Response | Promise<Response>;

/**
 * A `fetch` that asks the test for its answers: the first request gets the first, and so on; the last one stays. What
 * an answerer throws is a network failure.
 */
export function scriptedFetch(...answers: Answerer[]): { fetch: typeof fetch; sent: SentRequest[] } {
  const sent: SentRequest[] = [];
  return {
    sent,
    async fetch(input, init = {}) {
      const url = String(input);
      const { pathname, search } = new URL(url);
      const request = {
        method: init.method ?? "GET",
        url,
        path: pathname + search,
        headers: new Headers(init.headers),
        body: typeof init.body === "string" ? JSON.parse(init.body) : undefined,
        signal: init.signal as AbortSignal,
      };
      const answer = answers[Math.min(sent.push(request), answers.length) - 1];
      if (answer === undefined) throw new Error("the test has no answer");
      request.signal.throwIfAborted();
      const aborted = new Promise<never>((_, reject) => {
        request.signal.addEventListener("abort", () => reject(request.signal.reason), { once: true });
      });
      return Promise.race([Promise.resolve().then(() => answer(request)), aborted]);
    },
  };
}

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Answerer {
  return () => Response.json(body, { status, headers });
}

export function refusal(code: string, status: number, headers: Record<string, string> = {}): Answerer {
  return json({ code, error: `refused with ${code}` }, status, headers);
}

/** As Node's fetch fails. */
export function networkFailure(code: string): Answerer {
  return () => {
    throw new TypeError("fetch failed", { cause: Object.assign(new Error(`connect ${code}`), { code }) });
  };
}

/** A request that gets no response until its signal fires. */
export const silence: Answerer = () => new Promise(() => {});

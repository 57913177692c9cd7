/** A response that was read to its end. */
export interface WholeResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly text: string;
}

/** What a request has. */
export interface SendInit extends Pick<RequestInit, "cache"> {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Sends a request and reads the whole response. Rejects if there is none, and when the signal fires. */
export type Send = (url: string, init: SendInit) => Promise<WholeResponse>;

export function sendByFetch(fetch: typeof globalThis.fetch): Send {
  return async (url, init) => {
    const response = await fetch(url, init);
    const { ok, status, headers } = response;
    return { ok, status, headers, text: await response.text() };
  };
}

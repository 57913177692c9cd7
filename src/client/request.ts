import type { RotaError } from "../model/errors.ts";
import { invalidField } from "../model/input/field-checks.ts";
import type { SendInit } from "./send.ts";
import type { RetryOptions } from "./settings.ts";

export interface Request {
  /** Default: GET. */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the root of the API, with every segment encoded. */
  readonly path: string;
  /** Undefined values are omitted. An array is joined by commas. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** The response is text. Default: JSON. */
  readonly text?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Idempotent: sending it twice does no more than sending it once. Every GET is. */
  readonly repeatable?: boolean;
  /** What to return if a retry is refused because the first try, whose response was lost, was carried out. */
  readonly whenDone?: (error: RotaError) => unknown;
  /** Overrides the client's own. */
  readonly timeoutMs?: number;
  readonly retry?: Required<RetryOptions>;
}

export function isRead({ method = "GET" }: Request): boolean {
  return method === "GET";
}

/** The arguments of `fetch`, without the signal. Throws `invalid_field` for a body that is not JSON. */
export function toFetch(
  { method = "GET", path, query = {}, headers, body }: Request,
  base: { readonly url: string; readonly headers: Readonly<Record<string, string>> },
): { url: string; init: Omit<SendInit, "signal"> } {
  const hasBody = body !== undefined;
  return {
    url: `${base.url}${path}${toQuery(query)}`,
    init: {
      method,
      headers: {
        ...base.headers,
        ...(hasBody ? { "content-type": "application/json" } : {}),
        ...headers,
      },
      ...(hasBody ? { body: toJson(body) } : {}),
      // A cached task would be out of date.
      cache: "no-store",
    },
  };
}

function toQuery(query: Readonly<Record<string, unknown>>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) params.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}

function toJson(body: unknown): string {
  try {
    return JSON.stringify(body) ?? "null";
  } catch (error) {
    throw invalidField("body", `what is sent must be JSON: ${(error as Error).message}`);
  }
}

import type { RotaError } from "../model/errors.ts";
import { invalidField } from "../model/input/field-checks.ts";
import type { RetryOptions } from "./settings.ts";

export interface Request {
  /** GET unless told. */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the root of the API, with every part of it encoded. */
  readonly path: string;
  /** What is undefined is left out; an array is joined by commas. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** The answer is text; JSON unless told. */
  readonly text?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Sending it twice does no more than sending it once: so it is with every GET. */
  readonly repeatable?: boolean;
  /** What to answer when a repetition is refused because the try before it, whose answer was lost, had done it. */
  readonly whenDone?: (error: RotaError) => unknown;
  /** In place of the client's own. */
  readonly timeoutMs?: number;
  readonly retry?: Required<RetryOptions>;
}

export function isRead({ method = "GET" }: Request): boolean {
  return method === "GET";
}

/** What `fetch` is handed, but for the signal. Throws `invalid_field` for a body that is not JSON. */
export function toFetch(
  { method = "GET", path, query = {}, headers, body }: Request,
  base: { readonly url: string; readonly headers: Readonly<Record<string, string>> },
): { url: string; init: RequestInit } {
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
      // What a task is now is not what it was when somebody asked before.
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

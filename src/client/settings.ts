import { keepAliveClock } from "../clock/keep-alive-clock.ts";
import type { Clock } from "../model/clock.ts";
import { checkKnown, invalidField, optionalNumber, optionalObject } from "../model/input/field-checks.ts";
import { asLog, type ConsoleLog, type Log, silentLog } from "../model/log.ts";
import { CLIENT_VIAS, type ClientVia } from "../model/provenance.ts";
import { type Send, sendByFetch } from "./send.ts";

export interface RotaClientOptions {
  /** The address of the server: `http://127.0.0.1:7682`, or behind a proxy `https://example.com/rota`. */
  readonly url: string;
  /** An API key, sent as `Authorization: Bearer …`. */
  readonly key?: string;
  /**
   * The token of an attempt (`ROTA_TASK_TOKEN`, `context.taskToken`): requests then act for its agent within its task. With a `key`
   * beside it, they may do only what both may.
   */
  readonly taskToken?: string;
  /** What kind of client this is: `createdBy.via` of all that it makes. Default: `http`. */
  readonly via?: ClientVia;
  /** The name and version of the program, such as `gateway/1.4`: `createdBy.client` of all that it makes. Default: none. */
  readonly name?: string;
  /** How often to retry a request that the server could not serve just now; false: never. */
  readonly retry?: false | RetryOptions;
  /** How long one response may take, in milliseconds. Default: 30 000. */
  readonly timeoutMs?: number;
  /** Logs handlers that throw and lost connections. Default: silent. A pino logger fits, and so does `console`. */
  readonly log?: Log | ConsoleLog;
  /** Sends the requests. Default: the global `fetch`; a `RotaWorker` sends by `node:http`, except its stream of signals. */
  readonly fetch?: typeof fetch;
  /** Parses the JSON of responses and events. Default: `JSON.parse`. Another one can keep integers beyond 2^53 exact. */
  readonly parse?: (text: string) => unknown;
  /** For tests: the clock. */
  readonly clock?: Clock;
  /** For tests: random numbers in [0, 1). */
  readonly random?: () => number;
}

export interface RetryOptions {
  /** Retries after the first try. Default: 3, at most 20. */
  readonly tries?: number;
  /** No retry begins later than this after the first try, in milliseconds. Default: 30 000. */
  readonly withinMs?: number;
}

/** The checked options, with every default filled in. */
export interface ClientSettings {
  /** Without a slash at the end. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly retry: Required<RetryOptions>;
  readonly timeoutMs: number;
  readonly log: Log;
  readonly fetch: typeof fetch;
  /** Sends the requests whose response is read as a whole. */
  readonly send: Send;
  readonly parse: (text: string) => unknown;
  readonly clock: Clock;
  readonly random: () => number;
}

export const NO_RETRY: Required<RetryOptions> = { tries: 0, withinMs: 0 };
const DEFAULT_RETRY: Required<RetryOptions> = { tries: 3, withinMs: 30_000 };
const DEFAULT_TIMEOUT_MS = 30_000;

const KNOWN = [
  "url",
  "key",
  "taskToken",
  "via",
  "name",
  "retry",
  "timeoutMs",
  "log",
  "fetch",
  "parse",
  "clock",
  "random",
];

/** Throws `invalid_field`. */
export function checkOptions(options: RotaClientOptions): ClientSettings {
  const fields = { ...options };
  checkKnown(fields, KNOWN);
  // Looked up for each request: in a browser it must be called by its own name, and tests replace it.
  const byFetch: typeof fetch = options.fetch ?? ((input, init) => fetch(input, init));
  return {
    url: checkUrl(options.url),
    headers: { ...checkKey(options.key), ...checkTaskToken(options.taskToken), ...checkName(options) },
    retry: checkRetry(options.retry),
    timeoutMs: optionalNumber(fields, "timeoutMs", { min: 1, max: 3_600_000 }) ?? DEFAULT_TIMEOUT_MS,
    log: asLog(options.log ?? silentLog),
    fetch: byFetch,
    send: sendByFetch(byFetch),
    parse: options.parse ?? JSON.parse,
    clock: options.clock ?? keepAliveClock,
    random: options.random ?? Math.random,
  };
}

function checkUrl(given: unknown): string {
  const url = typeof given === "string" && URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    throw invalidField("url", '`url` must be where Rota is, like "http://127.0.0.1:7682"');
  }
  // The message does not repeat the value, which contains a password.
  if (url.username !== "" || url.password !== "") {
    throw invalidField("url", "`url` must not hold a user or a password: an API key goes into `key`");
  }
  return url.href.replace(/\/+$/, "");
}

function checkKey(key: unknown): Record<string, string> {
  if (key === undefined) return {};
  if (typeof key === "string" && /^[\x21-\x7e]+$/.test(key)) return { authorization: `Bearer ${key}` };
  throw invalidField("key", "`key` must be an API key as Rota showed it: letters and signs without spaces");
}

function checkTaskToken(token: unknown): Record<string, string> {
  if (token === undefined) return {};
  if (typeof token === "string" && /^[\x21-\x7e]+$/.test(token)) return { "x-rota-task-token": token };
  throw invalidField("taskToken", "`taskToken` must be a token as Rota gave it: `rtt_…`");
}

function checkName({ via, name }: RotaClientOptions): Record<string, string> {
  if (via !== undefined && !CLIENT_VIAS.includes(via)) {
    throw invalidField("via", `\`via\` must be one of ${CLIENT_VIAS.join(", ")}`);
  }
  if (name !== undefined && (typeof name !== "string" || !/^[\x20-\x7e]{1,100}$/.test(name))) {
    throw invalidField("name", "`name` must be 1 to 100 printable ASCII characters");
  }
  return {
    ...(via === undefined ? {} : { "x-rota-via": via }),
    ...(name === undefined ? {} : { "x-rota-client": name }),
  };
}

function checkRetry(retry: unknown): Required<RetryOptions> {
  if (retry === false) return NO_RETRY;
  const fields = optionalObject({ retry }, "retry") ?? {};
  checkKnown(fields, ["tries", "withinMs"], "retry.");
  return {
    tries: optionalNumber(fields, "tries", { min: 0, max: 20 }, "retry.") ?? DEFAULT_RETRY.tries,
    withinMs:
      optionalNumber(fields, "withinMs", { min: 0, max: 3_600_000 }, "retry.") ?? DEFAULT_RETRY.withinMs,
  };
}

import { z } from "zod";
import { quoted } from "../model/input/field-checks.ts";
import { parseOutboundTarget } from "../model/outbound-target.ts";
import { dotted, must, numberIn, section } from "./option-kinds.ts";

const RATE = { min: 1, max: 1_000_000 } as const;

/** An address or a name, without a port. Whether this machine has it is only known when the server starts to listen. */
const HOST = /^[A-Za-z0-9.:_-]{1,253}$/;
const hostError = must('be an address of this machine, like "127.0.0.1" or "0.0.0.0", or its name');

/** Letters, digits and `-._~`, no slash at the end. */
const BASE_PATH = /^(?:(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*){1,8})?$/;
const basePathError = must('be a path without a slash at the end, like "/rota", or empty');

const HOPS_MAX = 10;
const PROXIES_MAX = 100;
const trustProxyForms = must(
  `be false, the number of proxies in front of Rota (1 to ${HOPS_MAX}), or an array of their addresses and networks, like ["127.0.0.1", "10.0.0.0/8"]`,
);

/** Names the first entry that is neither an address nor a network. */
function trustProxyError(fault: Parameters<typeof trustProxyForms>[0]): string {
  const { input, path } = fault;
  const wrong = Array.isArray(input) ? input.findIndex((entry) => !isNetwork(entry)) : -1;
  if (!Array.isArray(input) || wrong === -1) return trustProxyForms(fault);
  const entry = `${dotted(path)}.${wrong}`;
  return `\`${entry}\` must be an address ("127.0.0.1") or a network ("10.0.0.0/8"), not ${quoted(input[wrong])}`;
}

/** Which proxies may set `X-Forwarded-For`. `true` is refused: any caller could then choose its own address. */
const trustProxy = z
  .preprocess(
    // A variable is easier to write without brackets and quotes.
    (value) => (typeof value === "string" ? value.split(",").map((entry) => entry.trim()) : value),
    z.custom<false | number | string[]>(isTrustedProxies, { error: trustProxyError }),
  )
  .default(false)
  .describe(
    "Which `X-Forwarded-For` the audit log takes the caller's address from: the number of proxies in front of Rota, or their addresses and " +
      "networks (`10.0.0.0/8`). False: none; the address is that of the connection.",
  );

function isTrustedProxies(value: unknown): boolean {
  if (!Array.isArray(value)) {
    return value === false || (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= HOPS_MAX);
  }
  return value.length > 0 && value.length <= PROXIES_MAX && value.every(isNetwork);
}

function isNetwork(entry: unknown): boolean {
  return typeof entry === "string" && parseOutboundTarget(entry)?.kind === "network";
}

const ORIGINS_MAX = 100;
const originForms = must(
  `be an array of at most ${ORIGINS_MAX} origins, like ["https://app.example.com"]: scheme, host and, unless it is the default, port`,
);

/** Names the first entry that no browser would send as an `Origin`. */
function originsError(fault: Parameters<typeof originForms>[0]): string {
  const { input, path } = fault;
  const wrong = Array.isArray(input) ? input.findIndex((entry) => !isOrigin(entry)) : -1;
  if (!Array.isArray(input) || wrong === -1) return originForms(fault);
  const entry = input[wrong];
  const origin = typeof entry === "string" ? URL.parse(entry)?.origin : undefined;
  const hint = isOrigin(origin) ? `: write ${quoted(origin)}` : "";
  return `\`${dotted(path)}.${wrong}\` must be an origin, like "https://app.example.com" or "http://localhost:5173", not ${quoted(entry)}${hint}`;
}

/** Exactly as browsers write it: lower case, without a path, a slash at the end or the default port. */
function isOrigin(entry: unknown): boolean {
  return typeof entry === "string" && /^https?:\/\/[^*]+$/.test(entry) && URL.parse(entry)?.origin === entry;
}

/**
 * The origins whose pages may use the API. `*` is refused: each page that a user opens could then try keys, and read what a
 * server without keys says.
 */
const corsOrigins = z
  .preprocess(
    // A variable is easier to write without brackets and quotes.
    (value) => (typeof value === "string" ? value.split(",").map((entry) => entry.trim()) : value),
    z.custom<string[]>(
      (value) => Array.isArray(value) && value.length <= ORIGINS_MAX && value.every(isOrigin),
      {
        error: originsError,
      },
    ),
  )
  .default([])
  .describe(
    "Origins whose web pages may call the API from a browser (CORS), like `https://app.example.com`. Empty: none but Rota's own.",
  );

/** The HTTP server: its address, who may call it from a browser, and its rate limits. */
export const server = section({
  host: z
    .string({ error: hostError })
    .regex(HOST, { error: hostError })
    .default("127.0.0.1")
    .describe(
      "The address to listen on. On any address but `127.0.0.1`, `localhost` and `::1`, Rota starts only if there is an API key.",
    ),
  port: numberIn({ min: 0, max: 65_535 })
    .default(7682)
    .describe("The port to listen on; 0 picks a free one."),
  basePath: z
    .string({ error: basePathError })
    .regex(BASE_PATH, { error: basePathError })
    .default("")
    .describe(
      "The path at which a reverse proxy serves Rota, like `/rota`. Rota responds there as well as at `/`.",
    ),
  trustProxy,
  cors: section({ origins: corsOrigins }).prefault({}),
  rateLimit: section({
    perSecond: numberIn(RATE)
      .default(100)
      .describe("Requests per second of each API key. An expensive request counts as several."),
    burst: numberIn(RATE).default(200).describe("Requests that an API key may make at once after a pause."),
    maxExpensive: numberIn({ min: 1, max: 1_000 })
      .default(4)
      .describe(
        "Expensive requests of one API key that run at once on each node: pages of 500 rows and more, previews of 200 due times and more.",
      ),
    ofTenant: section({
      perSecond: numberIn(RATE)
        .default(1_000)
        .describe(
          "Requests per second of all API keys of a tenant together, on each node, once a second enabled tenant exists. An expensive request counts as several.",
        ),
      burst: numberIn(RATE)
        .default(2_000)
        .describe("Requests that all API keys of a tenant together may make at once after a pause."),
      maxExpensive: numberIn({ min: 1, max: 1_000 })
        .default(8)
        .describe("Expensive requests of all API keys of a tenant that run at once on each node."),
    }).prefault({}),
  }).prefault({}),
});

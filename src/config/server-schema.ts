import { z } from "zod";
import { parseOutboundTarget } from "../model/outbound-target.ts";
import { must, numberIn, section } from "./option-kinds.ts";

const RATE = { min: 1, max: 1_000_000 } as const;

/** An address or a name, without a port: what listens says by itself whether this machine has it. */
const HOST = /^[A-Za-z0-9.:_-]{1,253}$/;
const hostError = must('be an address of this machine, like "127.0.0.1" or "0.0.0.0", or its name');

/** What a proxy may call it: letters, digits and `-._~`, no slash at the end. */
const BASE_PATH = /^(?:(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*){1,8})?$/;
const basePathError = must('be a path without a slash at the end, like "/rota", or empty');

const HOPS_MAX = 10;
const PROXIES_MAX = 100;
const trustProxyError = must(
  `be false, how many proxies are in front of Rota (1 to ${HOPS_MAX}), or their addresses and networks, like ["127.0.0.1", "10.0.0.0/8"]`,
);

/** Whose `X-Forwarded-For` is believed. `true` would believe everybody's, and so nobody's. */
const trustProxy = z
  .preprocess(
    // A variable is easier to write without brackets and quotes.
    (value) => (typeof value === "string" ? value.split(",").map((entry) => entry.trim()) : value),
    z.custom<false | number | string[]>(isTrustedProxies, { error: trustProxyError }),
  )
  .default(false)
  .describe(
    "Whose `X-Forwarded-For` says where requests come from, for the audit log: that of so many proxies in front of Rota, or of those at these " +
      "addresses and networks (`10.0.0.0/8`). False: nobody's.",
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

/** Where requests come in, and how many. */
export const server = section({
  host: z
    .string({ error: hostError })
    .regex(HOST, { error: hostError })
    .default("127.0.0.1")
    .describe(
      "The address to listen on. Beyond `127.0.0.1`, `localhost` and `::1`, which only this machine reaches, it takes an API key to start.",
    ),
  port: numberIn({ min: 0, max: 65_535 })
    .default(7682)
    .describe("The port to listen on; 0 picks a free one."),
  basePath: z
    .string({ error: basePathError })
    .regex(BASE_PATH, { error: basePathError })
    .default("")
    .describe(
      "Where a reverse proxy has Rota, like `/rota`: it answers there as well as at `/`, and the dashboard works below it.",
    ),
  trustProxy,
  rateLimit: section({
    perSecond: numberIn(RATE)
      .default(100)
      .describe("How many requests a second each API key may make; one that costs more counts as several."),
    burst: numberIn(RATE).default(200).describe("How many of them at once, after a while without any."),
    maxExpensive: numberIn({ min: 1, max: 1_000 })
      .default(4)
      .describe(
        "How many expensive requests of one API key run at once, like pages of 500 rows and previews of 200 due times.",
      ),
  }).prefault({}),
});

import { z } from "zod";
import { OUTBOUND_TARGET_FORMS, parseOutboundTarget } from "../model/outbound-target.ts";
import { dotted, must, section } from "./option-kinds.ts";

// The value may be a URL with a password, so that the sentence does not repeat it.
const allowedTarget = z
  .string({ error: ({ path }) => `\`${dotted(path)}\` must be ${OUTBOUND_TARGET_FORMS}` })
  .refine((entry) => parseOutboundTarget(entry) !== null, {
    error: ({ path }) => `\`${dotted(path)}\` must be ${OUTBOUND_TARGET_FORMS}`,
  });

/** A list of hosts, addresses and networks. */
export const targets = z
  .preprocess(
    // A variable is easier to write without brackets and quotes.
    (value) => (typeof value === "string" ? value.split(",").map((entry) => entry.trim()) : value),
    z.array(allowedTarget, { error: must("be an array of hosts, addresses and networks") }),
  )
  .default([]);

/** What callbacks, and executors that were given over HTTP, may call. */
export const outbound = section({
  allow: targets.describe(
    "What callbacks, and agents made over HTTP, may call although it is not public: hosts (`hooks.internal`, `*.example.internal`), addresses and networks (`10.0.0.0/8`).",
  ),
  deny: targets.describe("What they never call, public or not, whatever `outbound.allow` says."),
});

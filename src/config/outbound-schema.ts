import { z } from "zod";
import { OUTBOUND_TARGET_FORMS, parseOutboundTarget } from "../model/outbound-target.ts";
import { dotted, must, section } from "./option-kinds.ts";

// The message does not repeat the value: it may be a URL with a password.
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

/** Which hosts callbacks, and executors of agents made over HTTP, may call. */
export const outbound = section({
  allow: targets.describe(
    "Private targets that callbacks, and agents made over HTTP, may call: hosts (`hooks.internal`, `*.example.internal`), addresses and networks (`10.0.0.0/8`).",
  ),
  deny: targets.describe(
    "Targets that they must not call, public ones included. `deny` wins over `outbound.allow`.",
  ),
});

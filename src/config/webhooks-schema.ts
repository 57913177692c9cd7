import { z } from "zod";
import { ALLOWED_TARGET_FORMS, parseAllowedTarget } from "../model/allowed-target.ts";
import { WEBHOOK_SECRET_FORM, webhookKey } from "../model/webhook-secret.ts";
import { dotted, must, section } from "./option-kinds.ts";

/** The variable that holds the secret unless the configuration names another. */
export const DEFAULT_SECRET_ENV = "ROTA_WEBHOOK_SECRET";

// The value may be a URL with a password, so that the sentence does not repeat it.
const allowedTarget = z
  .string({ error: ({ path }) => `\`${dotted(path)}\` must be ${ALLOWED_TARGET_FORMS}` })
  .refine((entry) => parseAllowedTarget(entry) !== null, {
    error: ({ path }) => `\`${dotted(path)}\` must be ${ALLOWED_TARGET_FORMS}`,
  });

const allow = z
  .preprocess(
    // A variable is easier to write without brackets and quotes.
    (value) => (typeof value === "string" ? value.split(",").map((entry) => entry.trim()) : value),
    z.array(allowedTarget, { error: must("be an array of hosts, addresses and networks") }),
  )
  .default([])
  .describe(
    "What callbacks may reach although it is not public: hosts (`hooks.internal`, `*.example.internal`), addresses " +
      "and networks (`10.0.0.0/8`).",
  );

/** How callbacks are made, as a file says it. */
export const webhooks = section({
  allow,
  secretEnv: z
    .string({ error: must("be the name of an environment variable") })
    .regex(/^[A-Za-z_]\w*$/, { error: must("be the name of an environment variable") })
    .default(DEFAULT_SECRET_ENV)
    .describe(
      "The environment variable that holds the secret, `whsec_…`, which signs the callbacks of the tenant `default` until that has one of its own; not set: they are not signed.",
    ),
});

/** The same as a program says it, which hands over the secret itself. */
export const webhookOptions = section({
  allow,
  secret: z
    .string({ error: secretFault })
    .refine((secret) => webhookKey(secret) !== null, { error: secretFault })
    .exactOptional(),
});

/** Without the value, which is a secret, or nearly one. */
function secretFault({ path }: { readonly path?: PropertyKey[] | undefined }): string {
  return `\`${dotted(path)}\` must be ${WEBHOOK_SECRET_FORM}`;
}

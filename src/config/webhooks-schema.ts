import { z } from "zod";
import { WEBHOOK_SECRET_FORM, webhookKey } from "../model/webhook-secret.ts";
import { dotted, section } from "./option-kinds.ts";
import { targets } from "./outbound-schema.ts";

/** The variable that holds the secret unless the configuration names another. */
export const DEFAULT_SECRET_ENV = "ROTA_WEBHOOK_SECRET";

/** The section `webhooks` of a configuration file. */
export const webhooks = section({
  allow: targets.describe("The old name of `outbound.allow`. Entries of both lists are allowed."),
  secretEnv: z
    .string({ error: variableFault })
    .regex(/^[A-Za-z_]\w*$/, { error: variableFault })
    .default(DEFAULT_SECRET_ENV)
    .describe(
      "The environment variable with the secret (`whsec_…`) that signs the callbacks of the tenant `default` until its first rotation. Not set: they are not signed.",
    ),
});

/** The same in the options of a program, which passes the secret itself. */
export const webhookOptions = section({
  allow: targets,
  secret: z
    .string({ error: secretFault })
    .refine((secret) => webhookKey(secret) !== null, { error: secretFault })
    .exactOptional(),
});

/** Without the value, which may be the secret that belongs into the variable: anyone can read faults in `/health`. */
function variableFault({ path }: { readonly path?: PropertyKey[] | undefined }): string {
  return `\`${dotted(path)}\` must be the name of an environment variable, like \`${DEFAULT_SECRET_ENV}\``;
}

/** Without the value, which is a secret, or nearly one. */
function secretFault({ path }: { readonly path?: PropertyKey[] | undefined }): string {
  return `\`${dotted(path)}\` must be ${WEBHOOK_SECRET_FORM}`;
}

import { shownVariable, variableNameFault } from "../model/executor-program.ts";
import { isObject } from "../model/input/field-checks.ts";
import { WEBHOOK_SECRET_FORM, webhookKey } from "../model/webhook-secret.ts";
import { DEFAULT_SECRET_ENV } from "./webhooks-schema.ts";

export type FoundSecret =
  /** Undefined: callbacks are not signed. */
  { readonly ok: true; readonly secret: string | undefined } | { readonly ok: false; readonly fault: string };

/**
 * Reads the secret that signs callbacks from the variable that `webhooks` of the configuration names, as written. The default
 * variable may be missing; another one must be set.
 */
export function findWebhookSecret(
  webhooks: unknown,
  environment: Readonly<Record<string, string | undefined>>,
): FoundSecret {
  const { secretEnv: variable = DEFAULT_SECRET_ENV } = isObject(webhooks) ? webhooks : {};
  // The schema reports what is not the name of a variable.
  if (typeof variable !== "string" || variableNameFault(variable) !== null)
    return { ok: true, secret: undefined };
  const secret = environment[variable] || undefined;
  if (secret !== undefined && webhookKey(secret) === null) {
    return { ok: false, fault: `${variable} must be ${WEBHOOK_SECRET_FORM}` };
  }
  if (secret !== undefined || variable === DEFAULT_SECRET_ENV) return { ok: true, secret };
  return {
    ok: false,
    fault: `\`webhooks.secretEnv\` names ${shownVariable(variable)}, which is not set: set it, or leave the option out`,
  };
}

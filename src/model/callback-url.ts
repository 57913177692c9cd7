import { withPlainHost } from "./callback-host.ts";
import { checkText, invalidField } from "./input/field-checks.ts";

/** Longer than any URL that a server would accept. */
const URL_LENGTH_MAX = 2_048;

/**
 * What is wrong with the form of a callback URL, as the rest of "`callbackUrl` must …"; null: nothing. The sentence never
 * repeats the URL, which may contain a password.
 */
export function callbackUrlFault(url: string): string | null {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    return 'be an http or https URL, like "https://hooks.example/rota"';
  if (parsed.username !== "" || parsed.password !== "") return "have no user or password in it";
  const isTooLong = Math.max(url.length, withPlainHost(parsed, url).length) > URL_LENGTH_MAX;
  return isTooLong ? `have at most ${URL_LENGTH_MAX} characters` : null;
}

/** A callback URL of a valid form, with its host in plain form. The address guard decides whether it may be called. */
export function checkCallbackUrl(value: unknown, field: string): string {
  const text = checkText(value, field);
  const fault = callbackUrlFault(text);
  if (fault !== null) throw invalidField(field, `\`${field}\` must ${fault}`);
  return withPlainHost(new URL(text), text);
}

/** The callback of a task or a batch, for which `webhookUrl` is another name; null: there is none. */
export function callbackUrlOf(input: {
  readonly callbackUrl?: string;
  readonly webhookUrl?: string;
}): string | null {
  const { callbackUrl, webhookUrl } = input;
  if (callbackUrl !== undefined && webhookUrl !== undefined && callbackUrl !== webhookUrl) {
    throw invalidField("webhookUrl", "`webhookUrl` is another name for `callbackUrl`: write one of them");
  }
  return callbackUrl ?? webhookUrl ?? null;
}

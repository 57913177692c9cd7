import { withPlainHost } from "./callback-host.ts";
import { type Fields, invalidField, optionalText } from "./input/field-checks.ts";

/** Longer than any URL that a server would accept. */
const URL_LENGTH_MAX = 2_048;

/**
 * What is wrong with the form of a callback URL, as the rest of "`callbackUrl` must …"; null: nothing. The sentence never
 * repeats the URL, which may contain a password.
 */
export function callbackUrlFault(url: string): string | null {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return "be an http or https URL";
  if (parsed.username !== "" || parsed.password !== "") return "have no user or password in it";
  const isTooLong = Math.max(url.length, withPlainHost(parsed, url).length) > URL_LENGTH_MAX;
  return isTooLong ? `have at most ${URL_LENGTH_MAX} characters` : null;
}

/**
 * A callback URL of a valid form, with its host in plain form; null: none is given. The address guard decides whether it may be
 * called.
 */
export function optionalCallbackUrl(fields: Fields, field: string): string | null {
  const text = optionalText(fields, field);
  if (text === undefined) return null;
  const fault = callbackUrlFault(text);
  if (fault !== null) throw invalidField(field, `\`${field}\` must ${fault}`);
  return withPlainHost(new URL(text), text);
}

/** The same for a task or a batch, for which `webhookUrl` is another name. */
export function callbackUrlOf(input: Fields): string | null {
  const callbackUrl = optionalCallbackUrl(input, "callbackUrl");
  const webhookUrl = optionalCallbackUrl(input, "webhookUrl");
  if (callbackUrl !== null && webhookUrl !== null && callbackUrl !== webhookUrl) {
    throw invalidField("webhookUrl", "`webhookUrl` is another name for `callbackUrl`: write one of them");
  }
  return callbackUrl ?? webhookUrl;
}

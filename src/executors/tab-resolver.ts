import { preview } from "../model/input/field-checks.ts";
import { baseOf } from "./base-url.ts";
import { PermanentError } from "./errors.ts";

/** Knows who has a tab. */
export interface TabResolver {
  /** The URL, without a slash at its end, that the actions of the tab are posted under. */
  resolve(params: ResolveTabParams): Promise<string>;
}

export interface ResolveTabParams {
  readonly tabId: string;
  readonly signal: AbortSignal;
  /** Where the tab has just not been: what is remembered of it does not count. It may turn out to be there after all. */
  readonly notAt?: string;
}

/** One URL for all tabs. */
export function fixedResolver(url: string): TabResolver {
  const base = baseOf(url);
  return { resolve: async () => base };
}

/** The failure to find out who has a tab. */
export function unresolved(
  tabId: string,
  reason: string,
  { permanent, cause }: { permanent: boolean; cause?: unknown },
): Error {
  const message = `${cannotResolve(tabId)}${reason}`;
  const options = cause === undefined ? undefined : { cause };
  return permanent ? new PermanentError(message, options) : new Error(message, options);
}

/** How every such failure begins. */
export function cannotResolve(tabId: string): string {
  return `cannot resolve tab "${preview(tabId)}": `;
}

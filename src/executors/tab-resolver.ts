import { preview } from "../model/input/field-checks.ts";
import { baseOf } from "./base-url.ts";
import { PermanentError } from "./errors.ts";

/** Finds the instance that has a tab. */
export interface TabResolver {
  /** The base URL for the actions of the tab, without a slash at its end. */
  resolve(params: ResolveTabParams): Promise<string>;
}

export interface ResolveTabParams {
  readonly tabId: string;
  readonly signal: AbortSignal;
  /** Where the tab was just not found. Cached results that name it do not count. A new lookup may return it again. */
  readonly notAt?: string;
}

/** One URL for all tabs. */
export function fixedResolver(url: string): TabResolver {
  const base = baseOf(url);
  return { resolve: async () => base };
}

/** The error if the instance of a tab cannot be found. */
export function unresolved(
  tabId: string,
  reason: string,
  { permanent, cause }: { permanent: boolean; cause?: unknown },
): Error {
  const message = `${cannotResolve(tabId)}${reason}`;
  const options = cause === undefined ? undefined : { cause };
  return permanent ? new PermanentError(message, options) : new Error(message, options);
}

/** The beginning of every such error. */
export function cannotResolve(tabId: string): string {
  return `cannot resolve tab "${preview(tabId)}": `;
}

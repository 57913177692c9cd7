import type { ExecutorHeaders } from "../model/executor-config.ts";

/** Merges headers. Later ones override earlier ones, and the case of names does not matter. */
export function mergeHeaders(...origins: readonly (ExecutorHeaders | undefined)[]): ExecutorHeaders {
  const merged = new Headers();
  for (const origin of origins) {
    for (const [name, value] of Object.entries(origin ?? {})) merged.set(name, value);
  }
  return Object.fromEntries(merged);
}

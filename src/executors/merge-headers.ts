import type { ExecutorHeaders } from "../model/executor-config.ts";

/** Header fields of several origins in one, the later over the earlier, however their names are written. */
export function mergeHeaders(...origins: readonly (ExecutorHeaders | undefined)[]): ExecutorHeaders {
  const merged = new Headers();
  for (const origin of origins) {
    for (const [name, value] of Object.entries(origin ?? {})) merged.set(name, value);
  }
  return Object.fromEntries(merged);
}

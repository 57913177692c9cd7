import type { StorageSignal } from "../storage/storage.ts";

/** For each signal of the storage, the functions to call. Signals may be lost before a `reconnected`, so it calls all of them. */
export type SignalTable = {
  readonly [Kind in Exclude<StorageSignal["kind"], "fenced" | "workers">]?: readonly (() => void)[];
};

export function wakeAt(table: SignalTable, { kind }: StorageSignal): void {
  if (kind === "fenced" || kind === "workers") return;
  const wakes = kind === "reconnected" ? Object.values(table).flat() : (table[kind] ?? []);
  for (const wake of new Set(wakes)) wake();
}

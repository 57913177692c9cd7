import { useSyncExternalStore } from "react";
import { Store } from "../live/store.ts";

/** In which time zone the dashboard shows times. Those of schedules have a choice of their own. */
export type Zone = "mine" | "utc";
export const ZONES: Readonly<Record<Zone, string>> = { mine: "my time zone", utc: "UTC" };

const ITEM = "rota.zone";
const chosen = new Store<Zone>(readKept());

function readKept(): Zone {
  try {
    return localStorage.getItem(ITEM) === "utc" ? "utc" : "mine";
  } catch {
    return "mine";
  }
}

function choose(zone: Zone): void {
  chosen.set(zone);
  try {
    localStorage.setItem(ITEM, zone);
  } catch {
    // Storage is disabled in this browser: the choice lasts as long as the page.
  }
}

export function useZone(): readonly [Zone, (zone: Zone) => void] {
  return [useSyncExternalStore(chosen.subscribe, chosen.get), choose];
}

/** The value of a browser's date field, which has no zone, to the second. */
export function toField(at: number): string {
  const offset = chosen.get() === "utc" ? 0 : new Date(at).getTimezoneOffset() * 60_000;
  return new Date(at - offset).toISOString().slice(0, 19);
}

/** The time that such a field means. NaN: none. */
export function fromField(text: string): number {
  return Date.parse(chosen.get() === "utc" ? `${text}Z` : text);
}

/** For `Intl`. Undefined: the zone of the browser. */
export function useTimeZone(): "UTC" | undefined {
  return useZone()[0] === "utc" ? "UTC" : undefined;
}

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

/** For `Intl`. Undefined: the zone of the browser. */
export function useTimeZone(): "UTC" | undefined {
  return useZone()[0] === "utc" ? "UTC" : undefined;
}

import { useEffect, useState, useSyncExternalStore } from "react";
import { useKeys } from "../keys/use-keys.ts";
import { Store } from "../live/store.ts";

/** The page whose form for a new entry the palette asked for, until that page opens it. */
const wanted = new Store<string | undefined>(undefined);

/** Makes a page open its form for a new entry: now, or once it is shown. */
export function askForNew(path: string): void {
  wanted.set(path);
}

/** Whether the form of a page for a new entry is open. `n` opens it, and so does the palette. */
export function useNew(path: string, isAllowed = true): readonly [boolean, (isOpen: boolean) => void] {
  const [isOpen, setOpen] = useState(false);
  const isWanted = useSyncExternalStore(wanted.subscribe, wanted.get) === path;
  useKeys(isAllowed ? { n: () => setOpen(true) } : {});
  useEffect(() => {
    if (!isWanted) return;
    wanted.set(undefined);
    if (isAllowed) setOpen(true);
  }, [isWanted, isAllowed]);
  return [isOpen, setOpen];
}

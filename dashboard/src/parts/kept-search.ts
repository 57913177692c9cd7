import { useEffect } from "react";
import { useLocation, useSearch } from "./router.tsx";

/** The last filters of each page, for this tab. */
const kept = new Map<string, string>();

/** The address of a page with its last filters: a user who comes back finds them unchanged. */
export function keptHref(path: string): string {
  const last = kept.get(path);
  return last ? `${path}?${last}` : path;
}

/** Keeps the filters of every page. Returns the address of a page with them; of the page itself, without: its link clears them. */
export function useKeptSearch(): (path: string) => string {
  const [location] = useLocation();
  const search = useSearch();
  useEffect(() => {
    kept.set(location, search);
  }, [location, search]);
  return (path) => (path === location ? path : keptHref(path));
}

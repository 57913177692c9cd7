import { useEffect } from "react";
import { useLocation, useSearch } from "../parts/router.tsx";

/** The last filters of each page, for this tab. */
const kept = new Map<string, string>();

/** A user who comes back to a page finds its filters unchanged. Returns the address of a page with them. */
export function useKeptSearch(): (path: string) => string {
  const [location] = useLocation();
  const search = useSearch();
  useEffect(() => {
    kept.set(location, search);
  }, [location, search]);
  // On the page itself, its link clears the filters.
  return (path) => {
    const last = path === location ? "" : kept.get(path);
    return last ? `${path}?${last}` : path;
  };
}

import { useState } from "react";
import { useSession } from "../api/session.tsx";

/** A choice stored in this browser, for one tenant of one server. An unreadable value counts as missing. */
export function useKept<Value>(
  name: string,
  parse: (kept: unknown) => Value,
): readonly [Value, (value: Value) => void] {
  const { basePaths, me } = useSession();
  const key = `rota.${name}${basePaths.basePath}:${me.tenantId}`;
  const [value, setValue] = useState(() => {
    try {
      return parse(JSON.parse(localStorage.getItem(key) ?? "null"));
    } catch {
      return parse(null);
    }
  });
  return [
    value,
    (next) => {
      setValue(next);
      try {
        localStorage.setItem(key, JSON.stringify(next));
      } catch {
        // Storage is disabled in this browser: the choice lasts as long as the page.
      }
    },
  ];
}

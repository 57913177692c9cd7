import { useState } from "react";
import { useSession } from "../api/session.tsx";

/** A choice that this browser keeps, for one tenant of one server. What cannot be read is as if it had never been kept. */
export function useKept<Value>(
  name: string,
  parse: (kept: unknown) => Value,
): readonly [Value, (value: Value) => void] {
  const { place, me } = useSession();
  const key = `rota.${name}${place.basePath}:${me.tenantId}`;
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
        // A browser that keeps nothing forgets it with the page.
      }
    },
  ];
}

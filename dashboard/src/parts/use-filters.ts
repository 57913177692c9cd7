import { useCallback, useMemo } from "react";
import { useSearchParams } from "./router.tsx";

/** The filters of a view: names as in the API, each with its allowed values. Undefined: any text. */
export type FilterSchema = Readonly<Record<string, readonly string[] | undefined>>;

export type Filters<Schema extends FilterSchema> = { readonly [Name in keyof Schema]?: string };

export interface UseFilters<Schema extends FilterSchema> {
  readonly filters: Filters<Schema>;
  /** How many are set. */
  readonly count: number;
  /** An empty value removes the filter. Each change is an entry in the browser history, unless `replace`. */
  readonly set: (changes: Filters<Schema>, options?: { readonly replace?: boolean }) => void;
  readonly clear: () => void;
}

/**
 * Filters in the address: a reload, a link and the back button show the same. Values that the schema does not allow are ignored.
 */
export function useFilters<const Schema extends FilterSchema>(schema: Schema): UseFilters<Schema> {
  const [params, setParams] = useSearchParams();
  const filters = useMemo(() => readFilters(schema, params), [schema, params]);
  const set = useCallback(
    (changes: Filters<Schema>, { replace = false } = {}) => {
      setParams((current) => withChanges(current, changes), { replace });
    },
    [setParams],
  );
  const clear = useCallback(() => setParams(() => new URLSearchParams()), [setParams]);
  return { filters, count: Object.keys(filters).length, set, clear };
}

export function readFilters<Schema extends FilterSchema>(
  schema: Schema,
  params: URLSearchParams,
): Filters<Schema> {
  const entries = Object.entries(schema).flatMap(([name, allowed]) => {
    const value = params.get(name);
    const isGood = value !== null && value !== "" && (allowed === undefined || allowed.includes(value));
    return isGood ? [[name, value]] : [];
  });
  return Object.fromEntries(entries);
}

function withChanges(
  current: URLSearchParams,
  changes: Readonly<Record<string, string | undefined>>,
): URLSearchParams {
  const params = new URLSearchParams(current);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") params.delete(name);
    else params.set(name, value);
  }
  return params;
}

import { useFilters } from "../../parts/use-filters.ts";

const FILTERS = { kind: undefined } as const;

/** The kind of sessions to list, from the address. */
export function useKind(): string | undefined {
  return useFilters(FILTERS).filters.kind;
}

export function KindFilter({ kinds }: { readonly kinds: readonly string[] }) {
  const { filters, set } = useFilters(FILTERS);
  const { kind = "" } = filters;
  const choices = [...new Set([...kinds, ...(kind === "" || kind === "all" ? [] : [kind])])];
  return (
    <span className="chip">
      <span className="k" aria-hidden="true">
        Kind
      </span>
      <select
        className="chip-select"
        aria-label="Kind"
        value={kind}
        onChange={(event) => set({ kind: event.target.value })}
      >
        <option value="">not schedules</option>
        <option value="all">all</option>
        {choices.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </span>
  );
}

import { ChipSelect } from "../../parts/chip.tsx";
import { useFilters } from "../../parts/use-filters.ts";

const FILTERS = { kind: undefined } as const;

/** The kind of sessions to list, from the address. */
export function useKind(): string | undefined {
  return useFilters(FILTERS).filters.kind;
}

export function KindFilter({ kinds }: { readonly kinds: readonly string[] }) {
  const { filters, set } = useFilters(FILTERS);
  return (
    <ChipSelect
      label="Kind"
      value={filters.kind}
      none="not schedules"
      options={["all", ...kinds]}
      onChange={(kind) => set({ kind })}
    />
  );
}

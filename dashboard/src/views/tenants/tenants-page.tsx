import type { Tenant } from "../../../../src/client/index.ts";
import { Page } from "../../frame/page.tsx";
import { Button } from "../../parts/button.tsx";
import { ChipText } from "../../parts/chip.tsx";
import { shortId } from "../../parts/format.ts";
import { NoMatch } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Relative } from "../../parts/time.tsx";
import { useFilters } from "../../parts/use-filters.ts";
import { useNew } from "../../parts/use-new.ts";
import { TenantForm } from "./tenant-form.tsx";
import { sayBytes, sayLimits } from "./tenant-text.ts";
import { useTenants } from "./use-tenants.ts";

const FILTERS = { tenant: undefined, q: undefined } as const;

const COLUMNS: readonly Column<Tenant>[] = [
  {
    head: "Tenant",
    width: "minmax(10rem, 1fr)",
    phone: "main",
    glyph: ({ disabled }) => (disabled ? ["paused", "Disabled"] : ["done", "Enabled"]),
    cell: ({ name, disabled }) => (
      <>
        {name} {disabled && <span className="tag tag-ask">disabled</span>}
      </>
    ),
  },
  { head: "Id", width: "minmax(8rem, 0.6fr)", className: "id", from: "wide", cell: ({ id }) => shortId(id) },
  {
    head: "Limits",
    width: "minmax(9rem, 2.4fr)",
    className: "sub",
    phone: "below",
    cell: ({ limits }) => sayLimits(limits) || "none of its own",
  },
  {
    head: "Stored",
    width: "8.5rem",
    className: "num",
    cell: ({ storedBytes, limits }) =>
      storedBytes === null ? "–" : `${sayBytes(storedBytes)} of ${sayBytes(limits.maxStoredBytes ?? 0)}`,
  },
  {
    head: "Created",
    width: "7rem",
    className: "num muted",
    phone: "side",
    cell: ({ createdAt }) => <Relative at={createdAt} />,
  },
];

/** All tenants with their limits. One that is chosen in the address is open. */
export default function TenantsPage() {
  const { filters, set } = useFilters(FILTERS);
  const [isNew, setNew] = useNew("/tenants");
  const query = useTenants();
  const chosen = query.data?.tenants.find(({ id }) => id === filters.tenant);
  return (
    <Page
      title="Tenants"
      actions={
        <Button icon="plus" className="btn-main" onClick={() => setNew(true)}>
          <span>New tenant</span>
        </Button>
      }
    >
      <div className="bar" role="group" aria-label="Filters">
        <ChipText label="Search" placeholder="name or id" value={filters.q} onChange={(q) => set({ q })} />
      </div>
      <Read query={query} what="The tenants">
        {({ tenants }) => {
          const rows = tenants.filter(({ id, name }) =>
            `${id} ${name}`.toLowerCase().includes((filters.q ?? "").toLowerCase()),
          );
          if (rows.length === 0) return <NoMatch what="tenant" filters={1} onClear={() => set({ q: "" })} />;
          return (
            <Records
              label="Tenants"
              columns={COLUMNS}
              rows={rows}
              keyOf={({ id }) => id}
              href={({ id }) => `/tenants?${new URLSearchParams({ ...filters, tenant: id })}`}
            />
          );
        }}
      </Read>
      {isNew && <TenantForm onClose={() => setNew(false)} />}
      {chosen !== undefined && (
        <TenantForm key={chosen.id} tenant={chosen} onClose={() => set({ tenant: "" })} />
      )}
    </Page>
  );
}

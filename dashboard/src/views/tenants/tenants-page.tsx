import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Tenant } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useKeys } from "../../keys/use-keys.ts";
import { ConfirmByName, Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Link } from "../../parts/router.tsx";
import { StateGlyph } from "../../parts/state.tsx";
import { Relative } from "../../parts/time.tsx";
import { useToast } from "../../parts/toast.tsx";
import { useFilters } from "../../parts/use-filters.ts";
import { Limits, NewWebhookSecret } from "./limits.tsx";
import { TenantForm } from "./tenant-form.tsx";
import { sayBytes, sayLimits } from "./tenant-text.ts";
import { useTenants } from "./use-tenants.ts";

const FILTERS = { tenant: undefined } as const;

const COLUMNS: readonly Column<Tenant>[] = [
  {
    head: "Tenant",
    width: "minmax(10rem, 1fr)",
    phone: "main",
    className: "state",
    cell: ({ name, disabled }) => (
      <>
        <StateGlyph state={disabled ? "paused" : "done"} label={disabled ? "Disabled" : "Enabled"} />
        <span className="cut">{name}</span>
        {disabled && <span className="tag tag-ask">disabled</span>}
      </>
    ),
  },
  { head: "Id", width: "minmax(8rem, 0.6fr)", className: "id", isWide: true, cell: ({ id }) => id },
  {
    head: "Limits",
    width: "minmax(9rem, 1.2fr)",
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
  const [isNew, setNew] = useState(false);
  useKeys({ n: () => setNew(true) });
  const query = useTenants();
  const chosen = query.data?.tenants.find(({ id }) => id === filters.tenant);
  return (
    <Page
      title="Tenants"
      actions={
        <button type="button" className="btn btn-main" onClick={() => setNew(true)}>
          <Icon name="plus" />
          <span>New tenant</span>
        </button>
      }
    >
      <Read query={query} what="The tenants">
        {({ tenants }) => (
          <Records
            label="Tenants"
            columns={COLUMNS}
            rows={tenants}
            keyOf={({ id }) => id}
            href={({ id }) => `/tenants?tenant=${id}`}
          />
        )}
      </Read>
      {isNew && <TenantForm onClose={() => setNew(false)} />}
      {chosen !== undefined && <TenantSheet tenant={chosen} onClose={() => set({ tenant: "" })} />}
    </Page>
  );
}

/** One tenant, and all that can be done with it. */
function TenantSheet({ tenant, onClose }: { readonly tenant: Tenant; readonly onClose: () => void }) {
  const { client, me } = useSession();
  const queries = useQueryClient();
  const toast = useToast();
  const [open, setOpen] = useState<"edit" | "delete">();
  const { id, name, disabled, limits, storedBytes, createdAt } = tenant;
  const done = {
    onError: (error: unknown) => toast(sentenceOf(error)),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["tenants"] }),
  };
  const toggle = useMutation({
    mutationFn: () => (disabled ? client.tenants.enable(id) : client.tenants.disable(id)),
    onSuccess: () => toast(disabled ? `Enabled ${name}` : `Disabled ${name}: its tasks no longer start`),
    ...done,
  });
  const remove = useMutation({
    mutationFn: () => client.tenants.delete(id),
    onSuccess: () => {
      toast(`Deleted ${name} and all that it owned`);
      onClose();
    },
    ...done,
  });
  if (open === "edit") return <TenantForm tenant={tenant} onClose={() => setOpen(undefined)} />;
  if (open === "delete") {
    return (
      <ConfirmByName
        title={`Delete ${name}?`}
        name={name}
        action={`Delete ${name}`}
        onConfirm={() => remove.mutate()}
        onClose={() => setOpen(undefined)}
      >
        <p>
          All that it owns is deleted: tasks, sessions, schedules, runs, events, deliveries, agents and keys.
        </p>
      </ConfirmByName>
    );
  }
  return (
    <Dialog
      title={name}
      onClose={onClose}
      size="small"
      footer={
        <>
          {id !== "default" && id !== me.tenantId && (
            <button type="button" className="btn btn-bad" onClick={() => setOpen("delete")}>
              Delete
            </button>
          )}
          <span className="grow" />
          {id !== me.tenantId && (
            <button type="button" className="btn" disabled={toggle.isPending} onClick={() => toggle.mutate()}>
              {disabled ? "Enable" : "Disable"}
            </button>
          )}
          <button type="button" className="btn btn-main" data-focus onClick={() => setOpen("edit")}>
            Edit
          </button>
        </>
      }
    >
      <div className="dialog-form">
        <dl className="props props-wide">
          <dt>Id</dt>
          <dd className="mono">{id}</dd>
          <dt>State</dt>
          <dd>{disabled ? "disabled: nothing of it fires or starts" : "enabled"}</dd>
          <dt>Created</dt>
          <dd>
            <Relative at={createdAt} />
          </dd>
          {storedBytes !== null && (
            <>
              <dt>Stored</dt>
              <dd>{sayBytes(storedBytes)}</dd>
            </>
          )}
          <Limits limits={limits} />
        </dl>
        <div className="btn-group">
          <Link className="btn" href={`/keys?tenantId=${id}`}>
            <Icon name="key" />
            Keys
          </Link>
          <NewWebhookSecret tenantId={id} />
        </div>
      </div>
    </Dialog>
  );
}

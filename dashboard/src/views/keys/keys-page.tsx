import { useState } from "react";
import type { KeyInfo, Role } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { shortId } from "../../parts/format.ts";
import { Empty } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Secret } from "../../parts/secret.tsx";
import { Relative } from "../../parts/time.tsx";
import { useAction } from "../../parts/use-action.ts";
import { useFilters } from "../../parts/use-filters.ts";
import { useNew } from "../../parts/use-new.ts";
import { useQuery } from "../../queries/use-query.ts";
import { TenantChip } from "../tenants/limits.tsx";
import { NewKey } from "./new-key.tsx";

const FILTERS = { tenantId: undefined } as const;

const COLUMNS: readonly Column<KeyInfo>[] = [
  {
    head: "Name",
    width: "minmax(9rem, 1fr)",
    phone: "main",
    className: "name",
    cell: (key) => <Name apiKey={key} />,
  },
  {
    head: "Role",
    width: "11rem",
    phone: "below",
    cell: ({ role, agentId, agents }) => [role, agentId ?? agents?.join(", ")].filter(Boolean).join(": "),
  },
  {
    head: "Id",
    width: "10rem",
    className: "id",
    from: "wide",
    cell: ({ id }) => <span title={id}>{shortId(id)}</span>,
  },
  {
    head: "Last used",
    width: "7.5rem",
    className: "num muted",
    phone: "side",
    cell: ({ lastUsedAt }) => (lastUsedAt === undefined ? "never used" : <Relative at={lastUsedAt} />),
  },
  {
    head: "Expires",
    width: "7rem",
    className: "num muted",
    cell: ({ expiresAt }) => (expiresAt === undefined ? "never" : <Expiry at={expiresAt} />),
  },
  {
    head: "Created",
    width: "7rem",
    className: "num muted",
    from: "wide",
    cell: ({ createdAt }) => <Relative at={createdAt} />,
  },
];

function Name({ apiKey: { id, name } }: { readonly apiKey: KeyInfo }) {
  const { me } = useSession();
  return (
    <>
      {name} {id === me.keyId && <span className="tag">yours</span>}
    </>
  );
}

function Expiry({ at }: { readonly at: string }) {
  return Date.parse(at) < Date.now() ? <span className="state-ask">expired</span> : <Relative at={at} />;
}

/** The API keys of a tenant. A new one is shown once. */
export default function KeysPage() {
  const { client, may, me, adopt, takeAdopted } = useSession();
  const { filters, set } = useFilters(FILTERS);
  const [isNew, setNew] = useNew("/keys");
  const [created, setCreated] = useState(takeAdopted);
  const [removed, setRemoved] = useState<KeyInfo>();
  const isAdmin = may("administer");
  const owner = isAdmin && filters.tenantId !== undefined ? { tenantId: filters.tenantId } : {};
  const query = useQuery({
    queryKey: ["keys", owner.tenantId],
    queryFn: ({ signal }) => client.keys.list(owner, { signal }),
  });
  const isOwn = owner.tenantId === undefined || owner.tenantId === me.tenantId;
  // Only the tenant `default` has admins, and only an admin creates one.
  const isFirst = me.keyId === null;
  const roles = ROLES.filter((role) => role !== "admin" || (isAdmin && isOwn && me.tenantId === "default"));
  return (
    <Page
      title="Keys"
      actions={
        <Button icon="plus" className="btn-main" onClick={() => setNew(true)}>
          <span>New key</span>
        </Button>
      }
    >
      {isAdmin && (
        <div className="bar" role="group" aria-label="Filters">
          <TenantChip value={filters.tenantId} onChange={(tenantId) => set({ tenantId })} />
        </div>
      )}
      <Read query={query} what="The keys">
        {({ keys }) =>
          keys.length === 0 ? (
            <Empty title={isOwn ? "No keys yet" : "This tenant has no keys"}>
              {me.keyId === null
                ? "From the first one on, every request needs a key, and so does this page."
                : "Without one, no caller can use this tenant."}
            </Empty>
          ) : (
            <Records
              label="Keys"
              columns={COLUMNS}
              rows={keys}
              keyOf={({ id }) => id}
              actions={(key) => (
                <IconButton icon="bin" label={`Delete key ${key.name}`} onClick={() => setRemoved(key)} />
              )}
              actionsWidth="2.5rem"
            />
          )
        }
      </Read>
      {isNew && (
        <NewKey
          // With a lesser role, the user could not create another key.
          roles={isFirst ? ["admin"] : roles}
          owner={isFirst ? {} : owner}
          onCreated={isFirst ? adopt : setCreated}
          onClose={() => setNew(false)}
        />
      )}
      {created !== undefined && (
        <Secret
          title="Your new key"
          what="the key"
          value={created.key}
          hint="Send it as Authorization: Bearer …, set it as ROTA_KEY, or sign in with it here."
          onClose={() => setCreated(undefined)}
        />
      )}
      {removed !== undefined && (
        <DeleteKey apiKey={removed} owner={owner} onClose={() => setRemoved(undefined)} />
      )}
    </Page>
  );
}

const ROLES: readonly Role[] = ["viewer", "operator", "agent", "worker", "tenant-admin", "admin"];

interface DeleteKeyProps {
  readonly apiKey: KeyInfo;
  readonly owner: { readonly tenantId?: string };
  readonly onClose: () => void;
}

function DeleteKey({ apiKey: { id, name }, owner, onClose }: DeleteKeyProps) {
  const { client, me } = useSession();
  const { mutate } = useAction(() => client.keys.delete(id, owner), {
    said: () => `Deleted key ${name}`,
    changes: ["keys"],
  });
  return (
    <Confirm
      title={`Delete key ${name}?`}
      action={`Delete ${name}`}
      onConfirm={() => mutate(undefined)}
      onClose={onClose}
    >
      <p>
        Every node refuses it within a second. This cannot be undone.
        {id === me.keyId && " It is the key that you are signed in with."}
      </p>
    </Confirm>
  );
}

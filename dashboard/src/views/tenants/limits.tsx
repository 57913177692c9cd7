import { useState } from "react";
import type { RotatedWebhookSecret, TenantLimits } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Button } from "../../parts/button.tsx";
import { ChipSelect } from "../../parts/chip.tsx";
import { Secret } from "../../parts/secret.tsx";
import { useAction } from "../../parts/use-action.ts";
import { sayLimit, TENANT_LIMITS } from "./tenant-text.ts";
import { useTenants } from "./use-tenants.ts";

/** The limits of a tenant, for a list of facts. */
export function Limits({ limits }: { readonly limits: TenantLimits }) {
  return TENANT_LIMITS.map(([name, label]) => {
    const limit = limits[name];
    return (
      <div key={name}>
        <dt>{label}</dt>
        <dd className={limit === null ? "muted" : ""}>
          {limit === null ? "as configured" : sayLimit(name, limit)}
        </dd>
      </div>
    );
  });
}

/** A button that creates a new webhook secret for a tenant, which is shown once. */
export function NewWebhookSecret({ tenantId }: { readonly tenantId: string }) {
  const { client } = useSession();
  const [created, setCreated] = useState<RotatedWebhookSecret>();
  const { mutate, isPending } = useAction(() => client.tenants.rotateWebhookSecret(tenantId), {
    onDone: setCreated,
  });
  return (
    <>
      <Button icon="key" disabled={isPending} onClick={() => mutate(undefined)}>
        New webhook secret
      </Button>
      {created !== undefined && (
        <Secret
          title="New webhook secret"
          what="the secret"
          value={created.secret}
          hint={
            created.previousUntil === null
              ? "It signs the callbacks of this tenant."
              : "It signs the callbacks of this tenant. For 24 hours the one before signs as well."
          }
          onClose={() => setCreated(undefined)}
        />
      )}
    </>
  );
}

interface TenantChipProps {
  readonly value: string | undefined;
  readonly onChange: (tenantId: string) => void;
}

/** For admins, if there are several tenants: whose entries are shown. */
export function TenantChip({ value, onChange }: TenantChipProps) {
  const { me } = useSession();
  const tenants = useTenants().data?.tenants ?? [];
  const others = tenants.filter(({ id }) => id !== me.tenantId);
  if (others.length === 0) return null;
  return (
    <ChipSelect
      label="Tenant"
      value={value}
      none={me.tenantName}
      options={others.map(({ id, name }) => [id, name])}
      onChange={onChange}
    />
  );
}

import { useState } from "react";
import type { Tenant } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Button } from "../../parts/button.tsx";
import { ConfirmByName } from "../../parts/dialog.tsx";
import { Field, FormDialog, numberOf, textOf } from "../../parts/form.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Link } from "../../parts/router.tsx";
import { useAction } from "../../parts/use-action.ts";
import { useQueryClient } from "../../queries/query-context.ts";
import { NewWebhookSecret } from "./limits.tsx";
import { TENANT_LIMITS } from "./tenant-text.ts";

interface TenantFormProps {
  /** Left out: a new one. */
  readonly tenant?: Tenant;
  readonly onClose: () => void;
}

/** The name and the limits of a tenant, and what can be done with it. */
export function TenantForm({ tenant, onClose }: TenantFormProps) {
  const { client } = useSession();
  const queries = useQueryClient();
  const send = (fields: FormData): Promise<Tenant> => {
    const name = textOf(fields, "name") ?? "";
    const limits = Object.fromEntries(TENANT_LIMITS.map(([field]) => [field, numberOf(fields, field)]));
    return tenant === undefined
      ? client.tenants.create({ name, limits })
      : client.tenants.update(tenant.id, { name, limits });
  };
  return (
    <FormDialog
      title={tenant === undefined ? "New tenant" : `Tenant ${tenant.name}`}
      action={tenant === undefined ? "Create tenant" : "Save"}
      send={send}
      onDone={() => void queries.invalidateQueries({ queryKey: ["tenants"] })}
      onClose={onClose}
      above={tenant && <Actions tenant={tenant} onClose={onClose} />}
    >
      <Field name="name" label="Name" required isFirst defaultValue={tenant?.name} />
      <div className="form-2">
        {TENANT_LIMITS.map(([field, label]) => (
          <Field
            key={field}
            name={field}
            label={label}
            type="number"
            min={0}
            defaultValue={tenant?.limits[field] ?? undefined}
          />
        ))}
      </div>
      <p className="muted">Empty: use the default.</p>
    </FormDialog>
  );
}

function Actions({ tenant: { id, name, disabled }, onClose }: Required<TenantFormProps>) {
  const { client, me } = useSession();
  const [isAsking, setAsking] = useState(false);
  const changes = ["tenants"];
  const toggle = useAction(() => (disabled ? client.tenants.enable(id) : client.tenants.disable(id)), {
    said: () => (disabled ? `Enabled ${name}` : `Disabled ${name}: nothing of it fires or starts`),
    changes,
  });
  const remove = useAction(() => client.tenants.delete(id), {
    said: () => `Deleted ${name} and all that it owned`,
    onDone: onClose,
    changes,
  });
  return (
    <div className="btn-group above-form">
      <Link className="btn" href={`/keys?tenantId=${id}`}>
        <Icon name="key" />
        Keys
      </Link>
      <NewWebhookSecret tenantId={id} />
      {id !== me.tenantId && (
        <Button disabled={toggle.isPending} onClick={() => toggle.mutate(undefined)}>
          {disabled ? "Enable" : "Disable"}
        </Button>
      )}
      {id !== me.tenantId && id !== "default" && (
        <Button className="btn-bad" onClick={() => setAsking(true)}>
          Delete
        </Button>
      )}
      {isAsking && (
        <ConfirmByName
          title={`Delete ${name}?`}
          name={name}
          action={`Delete ${name}`}
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setAsking(false)}
        >
          <p>All that it owns goes with it: tasks, sessions, schedules, events, agents and keys.</p>
        </ConfirmByName>
      )}
    </div>
  );
}

import { useQueryClient } from "@tanstack/react-query";
import type { Tenant } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Field, FormDialog, numberOf, textOf } from "../../parts/form.tsx";
import { TENANT_LIMITS } from "./tenant-text.ts";

interface TenantFormProps {
  /** Left out: a new one. */
  readonly tenant?: Tenant;
  readonly onClose: () => void;
}

/** The name and the limits of a tenant. An empty limit is the configured one. */
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
      title={tenant === undefined ? "New tenant" : `Edit ${tenant.name}`}
      action={tenant === undefined ? "Create tenant" : "Save"}
      send={send}
      onDone={() => void queries.invalidateQueries({ queryKey: ["tenants"] })}
      onClose={onClose}
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
    </FormDialog>
  );
}

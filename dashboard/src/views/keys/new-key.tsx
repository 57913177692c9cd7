import { useState } from "react";
import type { CreatedKey, KeyInput, Role } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Field, FormDialog, textOf } from "../../parts/form.tsx";
import { fromField } from "../../parts/zone.ts";
import { useQueryClient } from "../../queries/query-context.ts";

const HINTS: Readonly<Record<Role, string>> = {
  viewer: "Reads the work of the tenant.",
  operator: "Reads, submits and changes the work of the tenant.",
  agent: "Submits, cancels and retries the tasks of one agent.",
  worker: "Runs tasks of its agents on another machine.",
  "tenant-admin": "An operator who also manages the keys of the tenant.",
  admin: "Manages all tenants and keys, lanes and the configuration.",
};

interface NewKeyProps {
  readonly roles: readonly Role[];
  readonly owner: { readonly tenantId?: string };
  readonly onCreated: (key: CreatedKey) => void;
  readonly onClose: () => void;
}

/** Asks for the name and role of a new key. */
export function NewKey({ roles, owner, onCreated, onClose }: NewKeyProps) {
  const { client } = useSession();
  const queries = useQueryClient();
  const [role, setRole] = useState<Role>(roles.find((each) => each === "operator") ?? "admin");
  const send = (fields: FormData) => {
    const agentId = textOf(fields, "agentId");
    const agents = textOf(fields, "agents");
    const expires = textOf(fields, "expiresAt");
    const input: KeyInput = {
      ...owner,
      name: textOf(fields, "name") ?? "",
      role,
      ...(role === "agent" && agentId !== undefined && { agentId }),
      ...(role === "worker" && agents !== undefined && { agents: agents.split(/[\s,]+/).filter(Boolean) }),
      ...(expires !== undefined && { expiresAt: new Date(fromField(expires)).toISOString() }),
    };
    return client.keys.create(input);
  };
  return (
    <FormDialog
      title="New key"
      action="Create key"
      send={send}
      onDone={(key) => {
        onCreated(key);
        void queries.invalidateQueries({ queryKey: ["keys"] });
      }}
      onClose={onClose}
    >
      <Field name="name" label="Name" required isFirst placeholder="ci, anna, gateway" />
      <Field
        name="role"
        label="Role"
        hint={roles.length === 1 ? "The first key is for an admin, who can create all others." : HINTS[role]}
        options={roles}
        defaultValue={role}
        onChange={(value) => setRole(value as Role)}
      />
      {role === "agent" && <Field name="agentId" label="Agent" required />}
      {role === "worker" && (
        <Field
          name="agents"
          label="Agents"
          required
          placeholder="translator, summarizer"
          hint="Separated by commas. It reads nothing else."
        />
      )}
      <Field isOptional name="expiresAt" label="Expires" type="datetime-local" />
    </FormDialog>
  );
}

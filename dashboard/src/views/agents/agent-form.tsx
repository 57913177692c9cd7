import type { AgentInfo, AgentInput } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { formFields, type Input, inputOf } from "../../forms/form-schema.ts";
import { SchemaFields } from "../../forms/schema-fields.tsx";
import { useSchemas } from "../../forms/use-schemas.ts";
import { FormDialog } from "../../parts/form.tsx";
import { Read } from "../../parts/read.tsx";
import { useToast } from "../../parts/toast.tsx";
import { useQueryClient } from "../../queries/query-context.ts";

interface AgentFormProps {
  /** Left out: a new one. */
  readonly agent?: AgentInfo;
  readonly onClose: () => void;
}

/** Creates an agent, or changes its settings. */
export function AgentForm({ agent, onClose }: AgentFormProps) {
  const { client } = useSession();
  const queries = useQueryClient();
  const toast = useToast();
  const schemas = useSchemas();
  const before = (agent ?? {}) as unknown as Input;
  const fields = formFields(schemas.data ?? {}, agent === undefined ? "NewAgent" : "AgentChanges");
  const send = async (data: FormData): Promise<AgentInfo> => {
    const input = inputOf(fields, data, before);
    if (agent !== undefined) return client.agents.update(agent.id, input);
    return client.agents.create(input as unknown as AgentInput);
  };
  return (
    <FormDialog
      title={agent === undefined ? "New agent" : `Agent ${agent.id}`}
      action={agent === undefined ? "Create agent" : "Save"}
      send={send}
      isReady={schemas.data !== undefined}
      onDone={({ id }) => {
        toast(agent === undefined ? `Created agent ${id}` : `Saved agent ${id}`);
        queries.invalidateQueries({ queryKey: ["agents"] });
      }}
      onClose={onClose}
    >
      <Read query={schemas} what="The fields">
        {() => <SchemaFields fields={fields} values={before} isFirst />}
      </Read>
    </FormDialog>
  );
}

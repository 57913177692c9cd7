import { useQueryClient } from "@tanstack/react-query";
import type { AgentInfo, AgentInput } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Field, FormDialog, numberOf, textOf } from "../../parts/form.tsx";
import { useToast } from "../../parts/toast.tsx";

interface AgentFormProps {
  /** Left out: a new one. */
  readonly agent?: AgentInfo;
  readonly onClose: () => void;
}

/** Creates an agent, or changes its executor, lane and limits. */
export function AgentForm({ agent, onClose }: AgentFormProps) {
  const { client } = useSession();
  const queries = useQueryClient();
  const toast = useToast();
  const send = (fields: FormData): Promise<AgentInfo> => {
    const changes = {
      executor: executorOf(textOf(fields, "executor")),
      lane: textOf(fields, "lane") ?? null,
      maxInflight: numberOf(fields, "maxInflight"),
      maxQueued: numberOf(fields, "maxQueued"),
    };
    if (agent !== undefined) return client.agents.update(agent.id, changes);
    const given = Object.entries(changes).filter(([, value]) => value !== null);
    return client.agents.create({ id: textOf(fields, "id") ?? "", ...Object.fromEntries(given) });
  };
  return (
    <FormDialog
      title={agent === undefined ? "New agent" : `Agent ${agent.id}`}
      action={agent === undefined ? "Create agent" : "Save"}
      send={send}
      onDone={({ id }) => {
        toast(agent === undefined ? `Created agent ${id}` : `Saved agent ${id}`);
        void queries.invalidateQueries({ queryKey: ["agents"] });
      }}
      onClose={onClose}
    >
      {agent === undefined && <Field name="id" label="Id" required isFirst maxLength={128} />}
      <Field
        name="executor"
        label="Executor"
        className="mono"
        placeholder='{"type": "http", "url": "https://…"}'
        hint="As JSON. Empty: by the kind of each task."
        defaultValue={agent?.executor && JSON.stringify(agent.executor)}
      />
      <Field name="lane" label="Lane" defaultValue={agent?.lane} hint="For its tasks that name none." />
      <div className="form-2">
        <Field
          name="maxInflight"
          label="Running at most"
          type="number"
          min={1}
          defaultValue={agent?.maxInflight}
        />
        <Field
          name="maxQueued"
          label="Waiting at most"
          type="number"
          min={1}
          defaultValue={agent?.maxQueued}
        />
      </div>
    </FormDialog>
  );
}

function executorOf(text: string | undefined): NonNullable<AgentInput["executor"]> | null {
  if (text === undefined) return null;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('the executor must be JSON, for example {"type": "echo"}');
  }
}

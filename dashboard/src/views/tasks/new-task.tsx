import { useState } from "react";
import type { SubmitInput } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Field, FormDialog } from "../../parts/form.tsx";
import { useLocation } from "../../parts/router.tsx";
import { useToast } from "../../parts/toast.tsx";

const KINDS = ["message", "instruction", "payload"] as const;
type Kind = (typeof KINDS)[number];

/** Submits one task with the most common fields. All other fields are in its JSON, under "Submit again". */
export function NewTask({ onClose }: { readonly onClose: () => void }) {
  const { client, me } = useSession();
  const [, navigate] = useLocation();
  const toast = useToast();
  const [kind, setKind] = useState<Kind>("message");
  return (
    <FormDialog
      title="New task"
      action="Submit"
      size="medium"
      send={async (fields) => client.tasks.submit(toInput(kind, fields))}
      onDone={({ taskId, warnings }) => {
        navigate(`/tasks/${taskId}`);
        if (warnings?.[0] !== undefined) toast(warnings[0]);
      }}
      onClose={onClose}
    >
      <div className="form-2">
        <Field
          name="agentId"
          label="Agent"
          placeholder="index"
          defaultValue={me.agentId ?? ""}
          readOnly={me.agentId !== undefined}
        />
        <Field
          name="priority"
          label="Priority"
          options={["critical", "high", "normal", "low"]}
          defaultValue="normal"
        />
      </div>
      <fieldset className="field">
        <legend className="label">What it is</legend>
        <span className="seg">
          {KINDS.map((each) => (
            <label key={each}>
              <input
                type="radio"
                name="kind"
                value={each}
                checked={kind === each}
                onChange={() => setKind(each)}
              />
              {each === "payload" ? "payload (JSON)" : each}
            </label>
          ))}
        </span>
      </fieldset>
      <Field
        name="text"
        label={kind === "payload" ? "Payload" : "Text"}
        className={kind === "payload" ? "mono" : ""}
        rows={6}
        required
        isFirst
      />
    </FormDialog>
  );
}

function toInput(kind: Kind, fields: FormData): SubmitInput {
  const text = String(fields.get("text") ?? "");
  const agentId = String(fields.get("agentId") ?? "").trim();
  return {
    ...(agentId === "" ? {} : { agentId }),
    priority: String(fields.get("priority")),
    [kind]: kind === "payload" ? JSON.parse(text) : text,
  } as unknown as SubmitInput;
}

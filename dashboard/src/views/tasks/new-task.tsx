import { useState } from "react";
import type { BatchInput, SubmitInput } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { type FormField, formFields, inputOf, type Schemas } from "../../forms/form-schema.ts";
import { MoreFields, SchemaFields } from "../../forms/schema-fields.tsx";
import { useSchemas } from "../../forms/use-schemas.ts";
import { FormDialog } from "../../parts/form.tsx";
import { Read } from "../../parts/read.tsx";
import { useLocation } from "../../parts/router.tsx";
import { useToast } from "../../parts/toast.tsx";
import { BATCH_EXAMPLE, KINDS, type NewKind, OFTEN } from "./task-kinds.ts";

/** Submits a task of any kind, or a batch, with all fields that the server takes. */
export function NewTask({ onClose }: { readonly onClose: () => void }) {
  const { client, me } = useSession();
  const [, navigate] = useLocation();
  const toast = useToast();
  const [kind, setKind] = useState<NewKind>("message");
  const schemas = useSchemas();
  const send = async (data: FormData) => {
    const input = inputOf(shownFields(schemas.data ?? {}, kind).all, data);
    if (kind !== "batch") return client.tasks.submit(input as unknown as SubmitInput);
    return client.tasks.submitBatch(input as unknown as BatchInput);
  };
  return (
    <FormDialog
      title="New task"
      action="Submit"
      size="medium"
      send={send}
      isReady={schemas.data !== undefined}
      onDone={(sent) => {
        navigate("batchId" in sent ? `/batches/${sent.batchId}` : `/tasks/${sent.taskId}`);
        if (sent.warnings?.[0] !== undefined) toast(sent.warnings[0]);
      }}
      onClose={onClose}
    >
      <fieldset className="field">
        <legend className="label">What it is</legend>
        <span className="seg">
          {Object.keys(KINDS).map((each) => (
            <label key={each}>
              <input
                type="radio"
                name="kind"
                value={each}
                checked={kind === each}
                onChange={() => setKind(each as NewKind)}
              />
              {each}
            </label>
          ))}
        </span>
      </fieldset>
      <Read query={schemas} what="The fields">
        {(data) => {
          const { first, often, more } = shownFields(data, kind);
          const shared = {
            values: { ...(me.agentId !== undefined && { agentId: me.agentId }), tasks: BATCH_EXAMPLE },
            fixed: me.agentId === undefined ? [] : ["agentId"],
          };
          return (
            // Each kind has a form of its own: its values are not those of another.
            <div className="dialog-form" key={kind}>
              <SchemaFields {...shared} fields={first} isFirst />
              <div className="form-2">
                <SchemaFields {...shared} fields={often} />
              </div>
              <MoreFields {...shared} fields={more} />
            </div>
          );
        }}
      </Read>
    </FormDialog>
  );
}

function shownFields(schemas: Schemas, kind: NewKind) {
  const ofKind: readonly string[] = KINDS[kind];
  const ofOthers: readonly string[] = Object.values(KINDS).flat();
  const all = formFields(schemas, kind === "batch" ? "NewBatch" : "NewTask")
    .filter(({ name }) => ofKind.includes(name) || !ofOthers.includes(name))
    // The field that makes it one of its kind, and the agent of an action.
    .map((field) =>
      field.name === ofKind[0] || isAgentOfAction(field, kind) ? { ...field, isRequired: true } : field,
    );
  const isOften = ({ name }: FormField) => OFTEN.includes(name);
  return {
    all,
    first: ofKind.flatMap((name) => all.filter((field) => field.name === name)),
    often: all.filter(isOften),
    more: all.filter((field) => !ofKind.includes(field.name) && !isOften(field)),
  };
}

function isAgentOfAction({ name }: FormField, kind: NewKind): boolean {
  return kind === "action" && name === "agentId";
}

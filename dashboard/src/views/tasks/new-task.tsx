import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useLocation } from "wouter";
import type { SubmitInput } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icon.tsx";
import { useToast } from "../../parts/toast.tsx";

const KINDS = ["message", "instruction", "payload"] as const;
type Kind = (typeof KINDS)[number];

/** Submits one task with the most common fields. All other fields are in its JSON, under "Submit again". */
export default function NewTask({ onClose }: { readonly onClose: () => void }) {
  const { client, me } = useSession();
  const [, navigate] = useLocation();
  const toast = useToast();
  const [kind, setKind] = useState<Kind>("message");
  const formId = useId();
  const { mutate, isPending, error } = useMutation({
    mutationFn: (fields: FormData) => client.tasks.submit(toInput(kind, fields)),
    onSuccess: ({ taskId, warnings }) => {
      onClose();
      navigate(`/tasks/${taskId}`);
      if (warnings?.[0] !== undefined) toast(warnings[0]);
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    mutate(new FormData(event.currentTarget));
  };
  return (
    <Dialog
      title="New task"
      onClose={onClose}
      footer={
        <>
          <span className="grow" />
          <button type="button" className="btn" onClick={onClose}>
            Close
          </button>
          <button type="submit" form={formId} className="btn btn-main" disabled={isPending}>
            Submit
          </button>
        </>
      }
    >
      <form id={formId} className="dialog-form" onSubmit={submit}>
        <div className="form-2">
          <div className="field">
            <label htmlFor={`${formId}-agent`}>Agent</label>
            <input
              className="input"
              id={`${formId}-agent`}
              name="agentId"
              placeholder="index"
              spellCheck={false}
              defaultValue={me.agentId ?? ""}
              readOnly={me.agentId !== undefined}
            />
          </div>
          <div className="field">
            <label htmlFor={`${formId}-priority`}>Priority</label>
            <span className="select">
              <select className="input" id={`${formId}-priority`} name="priority" defaultValue="normal">
                <option>critical</option>
                <option>high</option>
                <option>normal</option>
                <option>low</option>
              </select>
              <Icon name="down" size={12} />
            </span>
          </div>
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
        <div className="field">
          <label htmlFor={`${formId}-text`}>{kind === "payload" ? "Payload" : "Text"}</label>
          <textarea
            className={`input ${kind === "payload" ? "mono" : ""}`}
            id={`${formId}-text`}
            name="text"
            rows={6}
            required
            data-focus
            aria-invalid={error !== null}
            aria-describedby={error === null ? undefined : `${formId}-fault`}
          />
          {error !== null && (
            <span className="err" id={`${formId}-fault`} role="alert">
              <Icon name="alert" size={14} />
              {sentenceOf(error)}
            </span>
          )}
        </div>
      </form>
    </Dialog>
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

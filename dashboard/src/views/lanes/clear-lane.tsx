import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import type { LaneInfo } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { countOf } from "../../parts/format.ts";
import { useToast } from "../../parts/toast.tsx";

/** Asks for the name before everything that waits in a lane is cancelled: that cannot be undone. */
export function ClearLane({ lane, onClose }: { readonly lane: LaneInfo; readonly onClose: () => void }) {
  const { client } = useSession();
  const queries = useQueryClient();
  const toast = useToast();
  const [typed, setTyped] = useState("");
  const formId = useId();
  const { name, waiting } = lane;
  const { mutate, isPending } = useMutation({
    mutationFn: () => client.lanes.clear(name),
    onSuccess: ({ cancelled }) => toast(`Lane ${name}: cancelled ${countOf(cancelled, "task")}`),
    onError: (error) => toast(sentenceOf(error)),
    onSettled: () => {
      onClose();
      void queries.invalidateQueries({ queryKey: ["lanes"] });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (typed === name) mutate();
  };
  return (
    <Dialog
      title={`Clear lane ${name}`}
      onClose={onClose}
      size="small"
      footer={
        <>
          <span className="grow" />
          <button type="button" className="btn" onClick={onClose}>
            Keep
          </button>
          <button
            type="submit"
            form={formId}
            className="btn btn-bad-solid"
            disabled={typed !== name || isPending}
          >
            Cancel {countOf(waiting, "task")}
          </button>
        </>
      }
    >
      <form id={formId} className="dialog-form" onSubmit={submit}>
        <p>Everything that waits in this lane is cancelled. What runs goes on.</p>
        <div className="field">
          <label htmlFor={`${formId}-name`}>
            Type <span className="mono">{name}</span> to confirm
          </label>
          <input
            className="input"
            id={`${formId}-name`}
            data-focus
            autoComplete="off"
            spellCheck={false}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        </div>
      </form>
    </Dialog>
  );
}

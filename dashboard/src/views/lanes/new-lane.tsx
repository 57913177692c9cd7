import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId } from "react";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icon.tsx";

/** Creates a lane. */
export function NewLane({ onClose }: { readonly onClose: () => void }) {
  const { client } = useSession();
  const queries = useQueryClient();
  const formId = useId();
  const { mutate, isPending, error } = useMutation({
    mutationFn: async (fields: FormData) => {
      const name = String(fields.get("name")).trim();
      const total = String(fields.get("total"));
      const { lanes } = await client.lanes.list();
      if (lanes.some((lane) => lane.name === name)) throw new Error(`there is a lane ${name} already`);
      return client.lanes.put(name, {
        concurrency: Number(fields.get("concurrency")),
        total: total === "" ? null : Number(total),
      });
    },
    onSuccess: () => {
      onClose();
      void queries.invalidateQueries({ queryKey: ["lanes"] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    mutate(new FormData(event.currentTarget));
  };
  return (
    <Dialog
      title="New lane"
      onClose={onClose}
      size="small"
      footer={
        <>
          <span className="grow" />
          <button type="button" className="btn" onClick={onClose}>
            Close
          </button>
          <button type="submit" form={formId} className="btn btn-main" disabled={isPending}>
            Create lane
          </button>
        </>
      }
    >
      <form id={formId} className="dialog-form" onSubmit={submit}>
        <div className="field">
          <label htmlFor={`${formId}-name`}>Name</label>
          <input
            className="input"
            id={`${formId}-name`}
            name="name"
            required
            data-focus
            autoComplete="off"
            spellCheck={false}
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
        <div className="form-2">
          <div className="field">
            <label htmlFor={`${formId}-concurrency`}>On each node</label>
            <input
              className="input"
              id={`${formId}-concurrency`}
              name="concurrency"
              type="number"
              min={0}
              required
              defaultValue={5}
            />
          </div>
          <div className="field">
            <label htmlFor={`${formId}-total`}>
              Over all nodes <span className="muted">optional</span>
            </label>
            <input className="input" id={`${formId}-total`} name="total" type="number" min={1} />
          </div>
        </div>
      </form>
    </Dialog>
  );
}

import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId } from "react";
import { useLocation } from "wouter";
import { inputOfTask, type SubmitInput, type Task } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icon.tsx";
import { useToast } from "../../parts/toast.tsx";

/** The input of a task, to be edited and submitted as a new task. */
export default function SubmitAgain({
  task,
  onClose,
}: {
  readonly task: Task;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const [, navigate] = useLocation();
  const toast = useToast();
  const formId = useId();
  const { mutate, isPending, error } = useMutation({
    mutationFn: async (text: string) =>
      client.tasks.submitAgain(task.taskId, JSON.parse(text) as SubmitInput),
    onSuccess: ({ taskId }) => {
      onClose();
      navigate(`/tasks/${taskId}`);
      toast("Submitted");
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    mutate(String(new FormData(event.currentTarget).get("input")));
  };
  return (
    <Dialog
      title="Edit and submit again"
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
        <div className="field">
          <label htmlFor={`${formId}-input`}>Task as JSON</label>
          <textarea
            className="input mono"
            id={`${formId}-input`}
            name="input"
            rows={18}
            spellCheck={false}
            data-focus
            defaultValue={JSON.stringify(inputOfTask(task, Date.now()), null, 2)}
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

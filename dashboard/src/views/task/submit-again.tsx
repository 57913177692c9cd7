import { inputOfTask, type SubmitInput, type Task } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { jsonOf } from "../../forms/form-schema.ts";
import { Field, FormDialog } from "../../parts/form.tsx";
import { useLocation } from "../../parts/router.tsx";
import { useToast } from "../../parts/toast.tsx";

interface SubmitAgainProps {
  readonly task: Task;
  readonly onClose: () => void;
}

/** The input of a task, to be edited and submitted as a new task. */
export function SubmitAgain({ task, onClose }: SubmitAgainProps) {
  const { client } = useSession();
  const [, navigate] = useLocation();
  const toast = useToast();
  return (
    <FormDialog
      title="Edit and submit again"
      action="Submit"
      size="medium"
      send={async (fields) =>
        client.tasks.submitAgain(task.taskId, jsonOf("input", String(fields.get("input"))) as SubmitInput)
      }
      onDone={({ taskId }) => {
        navigate(`/tasks/${taskId}`);
        toast("Submitted");
      }}
      onClose={onClose}
    >
      <Field
        name="input"
        label="Task as JSON"
        className="mono"
        rows={18}
        isFirst
        defaultValue={JSON.stringify(inputOfTask(task, Date.now()), null, 2)}
      />
    </FormDialog>
  );
}

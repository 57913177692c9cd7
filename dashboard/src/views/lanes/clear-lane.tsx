import type { LaneInfo, TaskState } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { ConfirmByName } from "../../parts/dialog.tsx";
import { countOf } from "../../parts/format.ts";
import { useAction } from "../../parts/use-action.ts";
import { useQuery } from "../../queries/use-query.ts";
import { WAITING } from "../tasks/task-filters.ts";

const WAITING_STATES = WAITING.split(",") as TaskState[];

/** Asks the user to type the name of a lane before all its waiting tasks are cancelled, which cannot be undone. */
export function ClearLane({ lane, onClose }: { readonly lane: LaneInfo; readonly onClose: () => void }) {
  const { client } = useSession();
  const { name } = lane;
  // The lane counts the tasks of all tenants, and only those of this one are cancelled.
  const { data } = useQuery({
    queryKey: ["bulk-preview", "lane", name],
    queryFn: ({ signal }) =>
      client.bulks.preview({ action: "cancel", filter: { state: WAITING_STATES, lane: name } }, { signal }),
    meta: { live: ({ type }) => type !== "task.progress" },
  });
  const { mutate } = useAction(() => client.lanes.clear(name), {
    said: ({ cancelled }) => `Lane ${name}: cancelled ${countOf(cancelled, "task")}`,
    changes: ["lanes"],
  });
  return (
    <ConfirmByName
      name={name}
      title={`Clear lane ${name}`}
      action={data === undefined ? "Cancel the tasks" : `Cancel ${countOf(data.matched, "task")}`}
      onConfirm={() => mutate(undefined)}
      onClose={onClose}
    >
      <p>Cancels all tasks of your tenant that wait in this lane. Running tasks continue.</p>
    </ConfirmByName>
  );
}

import type { LaneInfo } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { ConfirmByName } from "../../parts/dialog.tsx";
import { countOf } from "../../parts/format.ts";
import { useAction } from "../../parts/use-action.ts";

/** Asks the user to type the name of a lane before all its waiting tasks are cancelled, which cannot be undone. */
export function ClearLane({ lane, onClose }: { readonly lane: LaneInfo; readonly onClose: () => void }) {
  const { client } = useSession();
  const { name, waiting } = lane;
  const { mutate } = useAction(() => client.lanes.clear(name), {
    said: ({ cancelled }) => `Lane ${name}: cancelled ${countOf(cancelled, "task")}`,
    changes: ["lanes"],
  });
  return (
    <ConfirmByName
      name={name}
      title={`Clear lane ${name}`}
      action={`Cancel ${countOf(waiting, "task")}`}
      onConfirm={() => mutate(undefined)}
      onClose={onClose}
    >
      <p>Cancels all waiting tasks of this lane. Running tasks continue.</p>
    </ConfirmByName>
  );
}

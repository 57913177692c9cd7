import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { LaneInfo } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { ConfirmByName } from "../../parts/dialog.tsx";
import { countOf } from "../../parts/format.ts";
import { useToast } from "../../parts/toast.tsx";

/** Asks the user to type the name of a lane before all its waiting tasks are cancelled, which cannot be undone. */
export function ClearLane({ lane, onClose }: { readonly lane: LaneInfo; readonly onClose: () => void }) {
  const { client } = useSession();
  const queries = useQueryClient();
  const toast = useToast();
  const { name, waiting } = lane;
  const { mutate } = useMutation({
    mutationFn: () => client.lanes.clear(name),
    onSuccess: ({ cancelled }) => toast(`Lane ${name}: cancelled ${countOf(cancelled, "task")}`),
    onError: (error) => toast(sentenceOf(error)),
    onSettled: () => queries.invalidateQueries({ queryKey: ["lanes"] }),
  });
  return (
    <ConfirmByName
      name={name}
      title={`Clear lane ${name}`}
      action={`Cancel ${countOf(waiting, "task")}`}
      onConfirm={mutate}
      onClose={onClose}
    >
      <p>Cancels all waiting tasks of this lane. Running tasks continue.</p>
    </ConfirmByName>
  );
}

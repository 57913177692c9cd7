import { useState } from "react";
import type { WorkerInfo } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { countOf } from "../../parts/format.ts";
import { useAction } from "../../parts/use-action.ts";

interface WorkerActionsProps {
  readonly worker: WorkerInfo;
  /** In a list, the buttons name the worker. */
  readonly isInList?: boolean;
  readonly onRemoved?: () => void;
}

/** Drains a worker, or removes it. */
export function WorkerActions({ worker, isInList = false, onRemoved }: WorkerActionsProps) {
  const { client } = useSession();
  const [isAsking, setAsking] = useState(false);
  const { id, name, state, running } = worker;
  const drain = useAction(() => client.workers.drain(id), {
    said: () => `Worker ${name} drains: it takes no more tasks`,
    changes: ["workers"],
  });
  const remove = useAction(() => client.workers.delete(id), {
    said: ({ released }) =>
      `Removed worker ${name}${released.length === 0 ? "" : `; ${countOf(released.length, "task")} back in the queue`}`,
    changes: ["workers"],
    ...(onRemoved && { onDone: onRemoved }),
  });
  return (
    <>
      {state !== "draining" && state !== "lost" && (
        <Button
          icon={isInList ? undefined : "pause"}
          className={isInList ? "btn-quiet" : ""}
          disabled={drain.isPending}
          onClick={() => drain.mutate(undefined)}
        >
          Drain{isInList && <span className="vh"> {name}</span>}
        </Button>
      )}
      {isInList ? (
        <IconButton icon="bin" label={`Remove ${name}`} onClick={() => setAsking(true)} />
      ) : (
        <Button icon="bin" onClick={() => setAsking(true)}>
          Remove
        </Button>
      )}
      {isAsking && (
        <Confirm
          title={`Remove worker ${name}?`}
          action="Remove worker"
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setAsking(false)}
        >
          <p>
            {running === 0
              ? "It runs no task."
              : `${countOf(running, "task")} of it ${running === 1 ? "goes" : "go"} back to the queue.`}{" "}
            A process that still runs registers again. To stop one gently, drain it.
          </p>
        </Confirm>
      )}
    </>
  );
}

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { TaskRow } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { useKeys } from "../../keys/use-keys.ts";
import { useCopy } from "../../parts/copy.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { countOf, formatCount } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { isEnded } from "../../parts/task-text.ts";
import { useToast } from "../../parts/toast.tsx";
import { forEachId } from "./for-each-id.ts";
import type { Selection } from "./use-selection.ts";

/** More than this is asked about first. */
const ASKED_FROM = 2;

interface BulkBarProps {
  readonly tasks: readonly TaskRow[];
  readonly selection: Selection;
  readonly onDone: () => void;
}

/** What can be done with the tasks that are selected. */
export function BulkBar({ tasks, selection, onDone }: BulkBarProps) {
  const { client } = useSession();
  const toast = useToast();
  const copy = useCopy();
  const [asked, setAsked] = useState<"cancel" | "retry">();
  const chosen = tasks.filter(({ taskId }) => selection.ids.has(taskId));
  const cancellable = chosen.filter(({ state }) => !isEnded(state)).map(({ taskId }) => taskId);
  const retryable = chosen
    .filter(({ state }) => state === "failed" || state === "cancelled")
    .map(({ taskId }) => taskId);

  const { mutate, isPending } = useMutation({
    mutationFn: ({ action, ids }: { action: "cancel" | "retry"; ids: readonly string[] }) =>
      forEachId(ids, (id) => client.tasks[action](id)),
    onSuccess: ({ done, failed, error }, { action }) => {
      const word = action === "cancel" ? "Cancelled" : "Retried";
      const rest = failed === 0 ? "" : `; ${formatCount(failed)} refused: ${sentenceOf(error)}`;
      toast(`${word} ${countOf(done, "task")}${rest}`);
      selection.clear();
      onDone();
    },
    onError: (error) => toast(sentenceOf(error)),
  });
  const start = (action: "cancel" | "retry") => {
    const ids = action === "cancel" ? cancellable : retryable;
    if (ids.length >= ASKED_FROM) setAsked(action);
    else if (ids.length > 0) mutate({ action, ids });
  };
  useKeys({
    ...(cancellable.length > 0 ? { c: () => start("cancel") } : {}),
    ...(retryable.length > 0 ? { r: () => start("retry") } : {}),
  });
  const askedIds = asked === "cancel" ? cancellable : retryable;
  return (
    <>
      <div className="bulk" role="toolbar" aria-label="Selected tasks">
        <span className="said" role="status">
          <b>{formatCount(selection.ids.size)}</b> selected
        </span>
        {cancellable.length > 0 && (
          <button
            type="button"
            className="btn btn-quiet"
            disabled={isPending}
            onClick={() => start("cancel")}
          >
            <Icon name="x" />
            Cancel
          </button>
        )}
        {retryable.length > 0 && (
          <button type="button" className="btn btn-quiet" disabled={isPending} onClick={() => start("retry")}>
            <Icon name="retry" />
            Retry
          </button>
        )}
        <button
          type="button"
          className="btn btn-quiet hide-s2"
          onClick={() => copy([...selection.ids].join("\n"), countOf(selection.ids.size, "id"))}
        >
          <Icon name="copy" />
          Copy ids
        </button>
        <span className="bar-v" />
        <button type="button" className="btn-icon" aria-label="Clear selection" onClick={selection.clear}>
          <Icon name="x" />
        </button>
      </div>
      {asked !== undefined && (
        <Confirm
          title={asked === "cancel" ? "Cancel tasks" : "Retry tasks"}
          action={`${asked === "cancel" ? "Cancel" : "Retry"} ${countOf(askedIds.length, "task")}`}
          onClose={() => setAsked(undefined)}
          onConfirm={() => mutate({ action: asked, ids: askedIds })}
        >
          <p>
            {asked === "cancel"
              ? "What waits never starts, and what runs is stopped."
              : "They go back into the queue with their retries anew."}
            {askedIds.length < chosen.length &&
              ` ${countOf(chosen.length - askedIds.length, "task")} of those selected cannot be, and stay as they are.`}
          </p>
        </Confirm>
      )}
    </>
  );
}

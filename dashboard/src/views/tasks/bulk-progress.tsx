import { type CSSProperties, useEffect } from "react";
import type { Bulk } from "../../../../src/client/index.ts";
import { hasCode, sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Store } from "../../live/store.ts";
import { Button } from "../../parts/button.tsx";
import { countOf, formatCount } from "../../parts/format.ts";
import { useToast } from "../../parts/toast.tsx";
import { useMutation } from "../../queries/use-mutation.ts";
import { useQuery } from "../../queries/use-query.ts";
import type { BulkAction } from "./bulk-filter.ts";

const KEPT = "rota.bulk";

/** The bulk action that was started last. It continues when the user opens other pages or reloads. */
export const currentBulk = new Store<string | undefined>(readKept());

function readKept(): string | undefined {
  try {
    return sessionStorage.getItem(KEPT) ?? undefined;
  } catch {
    return undefined;
  }
}

currentBulk.subscribe(() => {
  const bulkId = currentBulk.get();
  try {
    if (bulkId === undefined) sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, bulkId);
  } catch {
    // Without storage the action is forgotten with the page.
  }
});

const DONE: Readonly<Record<BulkAction, string>> = {
  cancel: "Cancelled",
  retry: "Retried",
  delete: "Deleted",
};
const DOING: Readonly<Record<BulkAction, string>> = {
  cancel: "Cancelling",
  retry: "Retrying",
  delete: "Deleting",
};
const EVERY_MS = 400;

/** The progress of the bulk action, with a button to abort it. */
export function BulkProgress({ id, onDone }: { readonly id: string; readonly onDone: () => void }) {
  const { client } = useSession();
  const toast = useToast();
  const { data, error, refetch } = useQuery({
    queryKey: ["bulk", id],
    queryFn: ({ signal }) => client.bulks.get(id, { signal }),
    refetchInterval: EVERY_MS,
  });
  const abort = useMutation({
    mutationFn: () => client.bulks.abort(id),
    onError: (fault) => toast(sentenceOf(fault)),
    onSettled: () => void refetch(),
  });
  // The action continues while the server is unreachable. If it is not found, it belongs to another tenant, or ended long ago.
  const isGone = hasCode(error, "not_found") || hasCode(error, "forbidden");
  const isOver = isGone || (data !== undefined && data.state !== "running");
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when it is over.
  useEffect(() => {
    if (!isOver) return;
    currentBulk.set(undefined);
    if (data !== undefined && !isGone) toast(summaryOf(data));
    onDone();
  }, [isOver]);
  if (data === undefined) return null;
  const past = data.done + data.failed + data.skipped;
  return (
    <div className="bulk" role="group" aria-label="Progress">
      <span className="said" role="status">
        {DOING[data.action]} <b>{formatCount(past)}</b> of {countOf(data.matched, "task")}
      </span>
      <span className="meter bulk-meter">
        <i style={{ "--p": `${(past / Math.max(1, data.matched)) * 100}%` } as CSSProperties} />
      </span>
      <Button icon="stop" className="btn-quiet" disabled={abort.isPending} onClick={() => abort.mutate()}>
        Abort
      </Button>
    </div>
  );
}

function summaryOf({ action, done, skipped, failed, state }: Bulk): string {
  return [
    `${DONE[action]} ${countOf(done, "task")}`,
    skipped > 0 && `${formatCount(skipped)} could not be`,
    failed > 0 && `${formatCount(failed)} no longer existed`,
    state === "aborted" && "aborted",
  ]
    .filter(Boolean)
    .join("; ");
}

import { useState } from "react";
import type { BulkInput, TaskRow } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { useKeys } from "../../keys/use-keys.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { useCopy } from "../../parts/copy.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { countOf, formatCount, shortId } from "../../parts/format.ts";
import type { IconName } from "../../parts/icon.tsx";
import { Fault, Loading } from "../../parts/notices.tsx";
import { stateWord } from "../../parts/state.tsx";
import { useToast } from "../../parts/toast.tsx";
import { useMutation } from "../../queries/use-mutation.ts";
import { useQuery } from "../../queries/use-query.ts";
import {
  type BulkAction,
  canSelectMatching,
  IDS_MAX,
  isFor,
  isForList,
  matchingInput,
} from "./bulk-filter.ts";
import { currentBulk } from "./bulk-progress.tsx";
import type { TaskFilters } from "./task-filters.ts";
import type { Selection } from "./use-selection.ts";

const ACTIONS: Readonly<
  Record<BulkAction, { readonly word: string; readonly icon: IconName; readonly text: string }>
> = {
  cancel: { word: "Cancel", icon: "x", text: "Waiting tasks will not start, and running ones are aborted." },
  retry: {
    word: "Retry",
    icon: "retry",
    text: "Puts the tasks back into the queue, with all their retries.",
  },
  delete: {
    word: "Delete",
    icon: "bin",
    text: "Deletes the tasks with their results and logs. This cannot be undone.",
  },
};
const NAMES = Object.keys(ACTIONS) as BulkAction[];

interface BulkBarProps {
  readonly tasks: readonly TaskRow[];
  readonly selection: Selection;
  readonly filters: TaskFilters;
  /** More tasks match than are loaded. */
  readonly hasMore: boolean;
}

/** The actions on the selected tasks. */
export function BulkBar({ tasks, selection, filters, hasMore }: BulkBarProps) {
  const { client } = useSession();
  const toast = useToast();
  const copy = useCopy();
  const [asked, setAsked] = useState<BulkInput>();
  const { ids, isAll, isMatching, selectMatching, clear } = selection;
  const { mutate, isPending } = useMutation({
    mutationFn: (input: BulkInput) => client.bulks.start(input),
    onSuccess: ({ bulkId }) => {
      currentBulk.set(bulkId);
      clear();
    },
    onError: (error) => toast(sentenceOf(error)),
  });
  const chosen = tasks.filter(({ taskId }) => ids.has(taskId));
  const inputs = NAMES.flatMap((action): BulkInput[] => {
    if (isMatching) return isForList(action, filters) ? [matchingInput(action, filters, Date.now())] : [];
    const named = chosen.filter(({ state }) => isFor(action, state)).map(({ taskId }) => taskId);
    return named.length === 0 || ids.size > IDS_MAX ? [] : [{ action, ids: named }];
  });
  const start = (input: BulkInput) => {
    // An action on one task that can be retried or submitted again afterwards needs no confirmation.
    if (input.ids?.length === 1 && input.action !== "delete") mutate(input);
    else setAsked(input);
  };
  const inputOf = (action: BulkAction) => inputs.find((input) => input.action === action);
  const [cancel, retry] = [inputOf("cancel"), inputOf("retry")];
  useKeys({
    ...(cancel && { c: () => start(cancel) }),
    ...(retry && { r: () => start(retry) }),
  });
  return (
    <>
      <div className="bulk" role="toolbar" aria-label="Selected tasks">
        <span className="said" role="status">
          {isMatching ? (
            <MatchingCount filters={filters} />
          ) : (
            <>
              <b>{formatCount(ids.size)}</b> selected
              {ids.size > IDS_MAX && `, ${formatCount(IDS_MAX)} at most at once`}
            </>
          )}
        </span>
        {!isMatching && (hasMore || !isAll) && canSelectMatching(filters) && (
          <Button className="btn-quiet link" onClick={selectMatching}>
            Select all that match
          </Button>
        )}
        {inputs.map((input) => (
          <Button
            icon={ACTIONS[input.action].icon}
            key={input.action}
            className="btn-quiet"
            disabled={isPending}
            onClick={() => start(input)}
          >
            {ACTIONS[input.action].word}
          </Button>
        ))}
        {!isMatching && (
          <Button
            icon="copy"
            className="btn-quiet"
            onClick={() => copy([...ids].join("\n"), countOf(ids.size, "id"))}
          >
            Copy ids
          </Button>
        )}
        <span className="bar-v" />
        <IconButton icon="x" label="Clear selection" onClick={clear} />
      </div>
      {asked !== undefined && (
        <AskBulk
          input={asked}
          others={isMatching ? 0 : ids.size - (asked.ids?.length ?? 0)}
          onClose={() => setAsked(undefined)}
          onConfirm={() => mutate(asked)}
        />
      )}
    </>
  );
}

/** Together these actions cover every state once. */
const COUNTED = ["cancel", "delete"] as const;

/** How many tasks match: those that can be cancelled, and those that have ended. */
function MatchingCount({ filters }: { readonly filters: TaskFilters }) {
  const { client } = useSession();
  const [now] = useState(Date.now);
  const { data } = useQuery({
    queryKey: ["bulk-preview", filters, now],
    queryFn: ({ signal }) =>
      Promise.all(
        COUNTED.filter((action) => isForList(action, filters)).map((action) =>
          client.bulks.preview(matchingInput(action, filters, now), { signal }),
        ),
      ),
  });
  const count = data?.reduce((sum, { matched }) => sum + matched, 0);
  const isCapped = data?.some(({ capped }) => capped);
  return (
    <>
      All {count !== undefined && <b>{`${formatCount(count)}${isCapped ? "+" : ""}`}</b>} that match are
      selected
    </>
  );
}

interface AskBulkProps {
  readonly input: BulkInput;
  /** How many of the selected tasks the action cannot act on. */
  readonly others: number;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Shows the result of a dry run, and asks for confirmation. */
function AskBulk({ input, others, onConfirm, onClose }: AskBulkProps) {
  const { client } = useSession();
  const { word, text } = ACTIONS[input.action];
  const { data, error, refetch } = useQuery({
    queryKey: ["bulk-preview", input],
    queryFn: ({ signal }) => client.bulks.preview(input, { signal }),
    staleTime: 0,
  });
  return (
    <Confirm
      title={`${word} tasks`}
      action={data === undefined ? `${word} tasks` : `${word} ${countOf(data.matched, "task")}`}
      isReady={data !== undefined && data.matched > 0}
      isSafe={input.action === "retry"}
      onClose={onClose}
      onConfirm={onConfirm}
    >
      {data !== undefined ? (
        <>
          <p>
            {data.matched === 0 ? "This action applies to none of these tasks." : text}
            {others > 0 && ` ${countOf(others, "task")} of those selected cannot be, and stay as they are.`}
            {data.capped && " There are more: so many are done at once."}
          </p>
          <ul className="sample">
            {data.sample.map(({ taskId, agentId, state }) => (
              <li key={taskId} className="muted">
                <span className="mono">{shortId(taskId)}</span> {agentId}, {stateWord(state).toLowerCase()}
              </li>
            ))}
            {data.matched > data.sample.length && (
              <li className="muted">and {formatCount(data.matched - data.sample.length)} more</li>
            )}
          </ul>
        </>
      ) : error === null ? (
        <Loading what="what would be done" />
      ) : (
        <Fault error={error} what="The dry run" onRetry={() => void refetch()} />
      )}
    </Confirm>
  );
}

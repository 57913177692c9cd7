import { useCallback, useEffect, useState } from "react";
import {
  type Explanation,
  inputOfTask,
  type RotaEvent,
  type Task,
  workOfTask,
} from "../../../../src/client/index.ts";
import { hasCode } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useKeys } from "../../keys/use-keys.ts";
import { useLiveEvents, useLiveState } from "../../live/live.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { CopyButton, useCopy } from "../../parts/copy.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { countOf, shortId } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { hasKeys, JsonView, toText } from "../../parts/json-view.tsx";
import { keptHref } from "../../parts/kept-search.ts";
import { Empty } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { Link } from "../../parts/router.tsx";
import { glyphOf, StateBadge } from "../../parts/state.tsx";
import { isEnded, isWaiting, titleOf } from "../../parts/task-text.ts";
import { Clock, Span } from "../../parts/time.tsx";
import { useAction } from "../../parts/use-action.ts";
import { useQueryClient } from "../../queries/query-context.ts";
import { useQuery } from "../../queries/use-query.ts";
import { patchTask } from "../tasks/patch-rows.ts";
import { Deliveries } from "./deliveries.tsx";
import { DependencyGraph } from "./dependency-graph.tsx";
import { Details } from "./details.tsx";
import { TasksLink } from "./reason-text.tsx";
import { SubmitAgain } from "./submit-again.tsx";
import { curlOf } from "./task-input.ts";
import { TaskLog } from "./task-log.tsx";
import { TaskTree, useTree } from "./task-tree.tsx";
import { Timeline } from "./timeline.tsx";
import { WhyBox } from "./why-box.tsx";

/** One task: why it waits, its attempts, and its result. */
export default function TaskPage({ params }: { readonly params: Record<string, string> }) {
  const id = params["id"] ?? "";
  const { client } = useSession();
  const query = useQuery({
    queryKey: ["task", id],
    queryFn: ({ signal }) => client.tasks.get(id, { signal }),
    meta: {
      live: (event) => event.taskId === id && event.type !== "task.progress",
      patch: (task: Task, events: readonly RotaEvent[]) =>
        events
          .filter((event) => event.taskId === id && event.type !== "batch.completed")
          .reduce(patchTask, task),
    },
  });
  const { data, error } = query;
  return (
    <Page title={data === undefined ? "Task" : titleOf(data)} crumb={<Crumb id={id} />}>
      {data === undefined && <h1 className="vh">Task {shortId(id)}</h1>}
      {data === undefined && hasCode(error, "not_found") ? (
        <Empty
          title="There is no such task"
          action={
            <Link className="btn" href={keptHref("/tasks")}>
              All tasks
            </Link>
          }
        >
          It may have ended long ago and no longer be kept, or belong to another tenant.
        </Empty>
      ) : (
        <Read query={query} what="The task">
          {(task) => <TaskSheet key={id} task={task} />}
        </Read>
      )}
    </Page>
  );
}

function Crumb({ id }: { readonly id: string }) {
  return (
    <>
      <Link href={keptHref("/tasks")}>Tasks</Link>
      <Icon name="right" size={12} />
      <span className="id fg">{shortId(id)}</span>
      <CopyButton text={() => id} what="id" />
    </>
  );
}

/** How often the reasons of a task that waits are read without an event, */
const WAIT_EVERY_MS = 15_000;
/** and how long after a time at which one of them ends. */
const AFTER_DUE_MS = 1_000;

/** When the reasons are read again: no event reports that a due time has passed. */
function againAfterMs({ reasons }: Explanation): number {
  const next = Math.min(...reasons.flatMap(({ until }) => (until === undefined ? [] : Date.parse(until))));
  return Math.min(Math.max(next - Date.now(), 0) + AFTER_DUE_MS, WAIT_EVERY_MS);
}

/** What holds the task. Undefined: it has ended, or that is not read yet. */
function useExplanation(task: Task): Explanation | undefined {
  const { taskId, state, lane, agentId } = task;
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const queries = useQueryClient();
  const { data, dataUpdatedAt }: { readonly data: Explanation | undefined; readonly dataUpdatedAt: number } =
    useQuery({
      queryKey: ["explain", taskId],
      queryFn: ({ signal }) => client.tasks.explain(taskId, { signal }),
      enabled: !isEnded(state),
      refetchInterval: (query) =>
        query.state.data !== undefined && !isPaused && isWaiting(task)
          ? againAfterMs(query.state.data)
          : false,
      meta: {
        // What holds the task depends on the other tasks of its lane and agent, and on those that it waits for.
        live: (event): boolean =>
          event.type !== "task.progress" &&
          (event.taskId === taskId ||
            event.lane === lane ||
            event.agentId === agentId ||
            data?.reasons.some((reason) => reason.taskId === event.taskId) === true),
      },
    });
  // No event reports that a task can start: the explanation notices it first.
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever it was read, whatever the task is by then.
  useEffect(() => {
    if (data !== undefined && data.state !== state) {
      queries.invalidateQueries({ queryKey: ["task", taskId] });
    }
  }, [dataUpdatedAt]);
  return data;
}

function TaskSheet({ task }: { readonly task: Task }) {
  const { taskId, state, error, attempts } = task;
  const explanation = useExplanation(task);
  const tree = useTree(task);
  const isCurrent = explanation !== undefined && explanation.state === state;
  return (
    <div className="split">
      <div>
        <TitleBlock
          task={task}
          since={isCurrent ? explanation.since : undefined}
          // Only what is below the task can be cancelled with it: of the root, all.
          hasStarted={tree?.tasks.some(({ parentTaskId }) => parentTaskId === taskId) ?? false}
        />
        {explanation !== undefined && isWaiting(task) && isWaiting(explanation) && (
          <WhyBox task={task} explanation={explanation} />
        )}
        {error !== undefined && isEnded(state) && state !== "done" && <ErrorCell error={error} task={task} />}
        <Progress task={task} />
        <Timeline task={task} since={isCurrent ? explanation.since : undefined} />
        <Data task={task} />
        {attempts.length > 0 && <TaskLog task={task} />}
        {tree !== undefined && <TaskTree tree={tree} taskId={taskId} />}
        {(task.dependsOn !== undefined || task.batchId !== undefined) && <DependencyGraph task={task} />}
        <Deliveries task={task} />
      </div>
      <Details task={task} />
    </div>
  );
}

interface TitleBlockProps {
  readonly task: Task;
  readonly since: string | undefined;
  /** Whether tasks were submitted within it. */
  readonly hasStarted: boolean;
}

function TitleBlock({ task, since, hasStarted }: TitleBlockProps) {
  const { agentId, lane, createdAt, completedAt, startedAt, attempts } = task;
  return (
    <div className="title-block">
      <h1>{titleOf(task)}</h1>
      <div className="title-meta">
        <StateBadge state={glyphOf(task)} />
        <span>
          {completedAt === undefined ? (
            <>
              for <Span from={since ?? startedAt ?? createdAt} />
            </>
          ) : (
            <>
              {attempts.length > 1 && `after ${attempts.length} attempts, `}
              <Span from={createdAt} to={completedAt} /> in all
            </>
          )}
        </span>
        <span>
          agent <TasksLink name="agentId" value={agentId} />
        </span>
        <span>
          lane <TasksLink name="lane" value={lane} />
        </span>
        <span className="muted">
          {completedAt === undefined ? "created" : "ended"} <Clock at={completedAt ?? createdAt} />
        </span>
      </div>
      <Actions task={task} hasStarted={hasStarted} />
    </div>
  );
}

function Actions({ task, hasStarted }: Omit<TitleBlockProps, "since">) {
  const { client, may, key } = useSession();
  const copy = useCopy();
  const queries = useQueryClient();
  const [isAgain, setAgain] = useState(false);
  const [isTree, setTree] = useState(false);
  const { taskId, state } = task;
  // An agent may do both with its own tasks, and sees no others.
  const canCancel = may("submit") && !isEnded(state);
  const canRetry = may("submit") && (state === "failed" || state === "cancelled");
  const { mutate, isPending } = useAction(
    (action: "cancel" | "retry"): Promise<unknown> => client.tasks[action](taskId),
    {
      said: (_answer, action) => (action === "cancel" ? "Cancelled" : "Back in the queue"),
      changes: ["task", taskId],
    },
  );
  const tree = useAction(() => client.tasks.cancel(taskId, { tree: true }), {
    said: ({ cancelled = 0, more }) =>
      `Cancelled ${countOf(cancelled, "task")}${more ? "; there are more, so do it again" : ""}`,
    onDone: () => queries.invalidateQueries({ queryKey: ["task", taskId] }),
    changes: ["tree"],
  });
  const cancel = () => mutate("cancel");
  const retry = () => mutate("retry");
  useKeys({ ...(canCancel ? { c: cancel } : {}), ...(canRetry ? { r: retry } : {}) });
  return (
    <div className="title-acts">
      {canRetry && (
        <Button icon="retry" className="btn-main" disabled={isPending} onClick={retry}>
          Retry
          <span className="kbd" aria-hidden="true">
            r
          </span>
        </Button>
      )}
      {canCancel && (
        <Button icon="x" disabled={isPending} onClick={cancel}>
          Cancel
        </Button>
      )}
      {may("submit") && hasStarted && (
        <Button icon="x" disabled={tree.isPending} onClick={() => setTree(true)}>
          Cancel with all it started
        </Button>
      )}
      {may("submit") && (
        <Button icon="plus" onClick={() => setAgain(true)}>
          Submit again
        </Button>
      )}
      <Button
        icon="terminal"
        onClick={() =>
          copy(
            curlOf(inputOfTask(task, Date.now()), { url: client.url, hasKey: key !== undefined }),
            "as curl",
          )
        }
      >
        Copy as curl
      </Button>
      {isTree && (
        <Confirm
          title="Cancel this task and all it started?"
          action="Cancel all"
          onConfirm={() => tree.mutate(undefined)}
          onClose={() => setTree(false)}
        >
          <p>Tasks that were submitted within it, and within those, are cancelled, too, wherever they run.</p>
        </Confirm>
      )}
      {isAgain && <SubmitAgain task={task} onClose={() => setAgain(false)} />}
    </div>
  );
}

function ErrorCell({ error, task }: { readonly error: string; readonly task: Task }) {
  return (
    <section className="cell rule" id="error" aria-labelledby="error-head">
      <div className="cell-head">
        <h2 id="error-head">{task.state === "failed" ? "Error" : "Why it ended"}</h2>
        <CopyButton text={() => error} what="error" />
      </div>
      <div className={task.state === "cancelled" ? "error-box error-quiet" : "error-box"}>
        <p className="msg">{error}</p>
      </div>
    </section>
  );
}

/** The last progress report of the executor. */
function Progress({ task }: { readonly task: Task }) {
  const [progress, setProgress] = useState<unknown>();
  const { taskId, state } = task;
  useLiveEvents(
    useCallback(
      (events: readonly RotaEvent[]) => {
        const last = events.findLast((event) => event.taskId === taskId && event.type === "task.progress");
        if (last !== undefined) setProgress(last.progress);
      },
      [taskId],
    ),
  );
  if (progress === undefined || state !== "running") return null;
  return <DataCell title="Progress" value={progress} isRuled />;
}

function Data({ task }: { readonly task: Task }) {
  const work = workOfTask(task);
  const { metadata, result } = task;
  const texts = Object.values(work);
  const isText = texts.length === 1 && typeof texts[0] === "string" && metadata === undefined;
  const input = isText ? texts[0] : { ...work, ...(metadata === undefined ? {} : { metadata }) };
  return (
    <div className="cell rule" id="data">
      <div className={result === undefined ? "" : "pair"}>
        <DataCell title="Input" value={input} />
        {result !== undefined && <DataCell title="Result" value={result} />}
      </div>
    </div>
  );
}

interface DataCellProps {
  readonly title: string;
  readonly value: unknown;
  readonly isRuled?: boolean;
}

function DataCell({ title, value, isRuled = false }: DataCellProps) {
  const [isSorted, setSorted] = useState(false);
  return (
    <div className={isRuled ? "cell rule" : ""}>
      <div className="cell-head">
        <h2>{title}</h2>
        <span className="more">
          {hasKeys(value) && (
            <IconButton
              icon="sort"
              label={`Sort the keys of ${title.toLowerCase()}`}
              aria-pressed={isSorted}
              onClick={() => setSorted(!isSorted)}
            />
          )}
          <CopyButton text={() => toText(value)} what={title.toLowerCase()} />
        </span>
      </div>
      <JsonView value={value} label={title} isSorted={isSorted} />
    </div>
  );
}

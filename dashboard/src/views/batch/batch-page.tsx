import { useMemo, useState } from "react";
import type { Batch, BatchTask, TaskRow, TaskState } from "../../../../src/client/index.ts";
import { hasCode } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { Button } from "../../parts/button.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { countOf, formatCount, formatDuration, formatShortCount, shortId } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { keptHref } from "../../parts/kept-search.ts";
import { Empty } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Link } from "../../parts/router.tsx";
import { StateGlyph, stateTone, stateWord } from "../../parts/state.tsx";
import { isEnded } from "../../parts/task-text.ts";
import { Moment, Span, useNow } from "../../parts/time.tsx";
import { useAction } from "../../parts/use-action.ts";
import { useQuery } from "../../queries/use-query.ts";
import { Graph } from "../task/graph.tsx";
import { Run, Wait } from "../tasks/task-columns.tsx";
import { tasksHref } from "../tasks/task-filters.ts";
import "./batch.css";
import { criticalPath } from "./critical-path.ts";

/** A batch has 100 tasks at most. */
const TASKS_MAX = 1_000;

/** The tasks of a batch: how many are in which state, their graph, and the chain that decides when it ends. */
export default function BatchPage({ params }: { readonly params: Record<string, string> }) {
  const id = params["id"] ?? "";
  const { client } = useSession();
  const meta = {
    live: (event: { batchId?: string; type: string }) =>
      event.batchId === id && event.type !== "task.progress",
  };
  const batch = useQuery({
    queryKey: ["batch", id],
    queryFn: ({ signal }) => client.tasks.getBatch(id, { signal }),
    meta,
  });
  const rows = useQuery({
    queryKey: ["tasks", "of-batch", id],
    queryFn: ({ signal }) => client.tasks.listRows({ batchId: id, limit: TASKS_MAX }, { signal }),
    meta,
  });
  return (
    <Page
      title={`Batch ${shortId(id)}`}
      crumb={
        <>
          <Link href={keptHref("/tasks")}>Tasks</Link>
          <Icon name="right" size={12} />
          <span className="id fg">{shortId(id)}</span>
          <CopyButton text={() => id} what="id" />
        </>
      }
      actions={batch.data && <Actions batch={batch.data} />}
    >
      <h1 className="vh">Batch {shortId(id)}</h1>
      {hasCode(batch.error, "not_found") ? (
        <Empty
          title="There is no such batch"
          action={
            <Link className="btn" href={keptHref("/tasks")}>
              All tasks
            </Link>
          }
        >
          It may have ended long ago and no longer be kept, or belong to another tenant.
        </Empty>
      ) : (
        <Read query={batch} what="The batch">
          {(data) => <Sheet batch={data} rows={rows.data?.tasks ?? []} />}
        </Read>
      )}
    </Page>
  );
}

function Sheet({ batch, rows }: { readonly batch: Batch; readonly rows: readonly TaskRow[] }) {
  const { batchId, tasks, edges, counts, parallelism, createdAt, completedAt } = batch;
  const now = useNow();
  // The path of a batch that has ended does not change with the time.
  const at = completedAt === undefined ? now : 0;
  const path = useMemo(() => criticalPath(batch, rows, at), [batch, rows, at]);
  const tokens = rows.reduce((sum, row) => sum + (row.tokens ?? 0), 0);
  const known = new Map(rows.map((row) => [row.taskId, row]));
  const nodes = useMemo(
    () =>
      tasks.map(({ taskId, key, agentId, state }) => ({
        id: taskId,
        title: key ?? shortId(taskId),
        note: agentId,
        state,
      })),
    [tasks],
  );
  const names = path.ids.map((id) => tasks.find(({ taskId }) => taskId === id)?.key ?? shortId(id));
  const states = Object.entries(counts) as [TaskState, number][];
  return (
    <>
      <div className="figures batch-figures">
        <div className="figure">
          <span className="k">
            <Icon name="clock" size={14} />
            {completedAt === undefined ? "So far" : "Took"}
          </span>
          <span className="v">
            <Span from={createdAt} to={completedAt} />
          </span>
          <span className="d">
            {countOf(tasks.length, "task")}, <Moment at={createdAt} />
            {parallelism !== null && `, ${parallelism} at once`}
            {tokens > 0 && `, ${formatShortCount(tokens)} tokens`}
          </span>
        </div>
        {states.map(([state, count]) => (
          <Link key={state} className="figure" href={tasksHref({ batchId, state })}>
            <span className="k">
              <StateGlyph state={state} />
              {stateWord(state)}
            </span>
            <span className="v">{formatCount(count)}</span>
          </Link>
        ))}
      </div>
      <section className="cell" aria-labelledby="path-head">
        <div className="cell-head">
          <h2 id="path-head">{edges.length === 0 ? "No dependencies" : "Graph"}</h2>
          {path.ids.length > 1 && (
            <span className="muted">
              critical path: {countOf(path.ids.length, "task")}, {formatDuration(path.runMs)} of work
              {path.waitMs >= 1_000 && ` and ${formatDuration(path.waitMs)} of waiting`}
            </span>
          )}
        </div>
        {edges.length === 0 ? (
          <p className="sub">No task of this batch waits for another one of it.</p>
        ) : (
          <>
            <Graph nodes={nodes} edges={edges} path={path.ids.length > 1 ? path.ids : []} />
            {path.ids.length > 1 && <p className="sub path-line">Critical path: {names.join(" → ")}.</p>}
          </>
        )}
      </section>
      <section className="rule" aria-label="Tasks of the batch">
        <Records
          label="Tasks"
          columns={columnsOf(known)}
          rows={tasks}
          keyOf={({ taskId }) => taskId}
          href={({ taskId }) => `/tasks/${taskId}`}
        />
      </section>
    </>
  );
}

function columnsOf(known: ReadonlyMap<string, TaskRow>): readonly Column<BatchTask>[] {
  return [
    {
      head: "Task",
      width: "minmax(10rem, 1fr)",
      phone: "main",
      glyph: ({ state }) => [state, stateWord(state)],
      cell: ({ taskId, key }) => known.get(taskId)?.title || key || shortId(taskId),
    },
    { head: "Key", width: "9rem", className: "sub", cell: ({ key }) => key ?? "–" },
    { head: "Agent", width: "8rem", className: "sub", from: "wide", cell: ({ agentId }) => agentId },
    {
      head: "State",
      width: "minmax(8rem, 0.8fr)",
      phone: "below",
      cell: ({ error, state }) => (
        <span className={stateTone(state) ?? "sub"}>{error ?? stateWord(state)}</span>
      ),
    },
    {
      head: "Wait",
      width: "4.5rem",
      className: "num muted",
      cell: ({ taskId }) => {
        const row = known.get(taskId);
        return row === undefined ? "–" : <Wait task={row} />;
      },
    },
    {
      head: "Run",
      width: "4.5rem",
      className: "num",
      phone: "side",
      cell: ({ taskId }) => {
        const row = known.get(taskId);
        return row === undefined ? "–" : <Run task={row} />;
      },
    },
  ];
}

function Actions({ batch: { batchId, tasks, counts } }: { readonly batch: Batch }) {
  const { client, may } = useSession();
  const [isAsking, setAsking] = useState(false);
  const open = tasks.filter(({ state }) => !isEnded(state)).length;
  const failed = counts.failed ?? 0;
  const changes = ["batch", batchId];
  const cancel = useAction(() => client.tasks.cancelBatch(batchId), {
    said: ({ cancelled }) => `Cancelled ${countOf(cancelled, "task")}`,
    changes,
  });
  const retry = useAction(
    () => client.bulks.start({ action: "retry", filter: { batchId, state: "failed" } }),
    { said: ({ matched }) => `Retrying ${countOf(matched, "task")}`, changes },
  );
  if (!may("operate")) return null;
  return (
    <>
      {failed > 0 && (
        <Button icon="retry" disabled={retry.isPending} onClick={() => retry.mutate(undefined)}>
          <span>
            Retry<span className="hide-s"> failed</span>
          </span>
        </Button>
      )}
      {open > 0 && (
        <Button icon="x" aria-label="Cancel" onClick={() => setAsking(true)}>
          <span className="hide-s">Cancel</span>
        </Button>
      )}
      {isAsking && (
        <Confirm
          title="Cancel the batch?"
          action={`Cancel ${countOf(open, "task")}`}
          onConfirm={() => cancel.mutate(undefined)}
          onClose={() => setAsking(false)}
        >
          <p>Running tasks are aborted, and waiting ones do not start.</p>
        </Confirm>
      )}
    </>
  );
}

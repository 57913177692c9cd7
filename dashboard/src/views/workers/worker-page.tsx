import type { Task, WorkerInfo } from "../../../../src/client/index.ts";
import { hasCode } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { countOf, formatCount, shortId } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { keptHref } from "../../parts/kept-search.ts";
import { Empty } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Link, useLocation } from "../../parts/router.tsx";
import { glyphOf, StateGlyph, stateTone, stateWord } from "../../parts/state.tsx";
import { titleOf } from "../../parts/task-text.ts";
import { Relative, Span } from "../../parts/time.tsx";
import { useQuery } from "../../queries/use-query.ts";
import { SlotGauge } from "../lanes/gauge.tsx";
import { TasksLink } from "../task/reason-text.tsx";
import { useWorker } from "./use-workers.ts";
import { WorkerActions } from "./worker-actions.tsx";
import { agentsText, labelsText, serves, shownState } from "./worker-text.ts";
import "./workers.css";

/** The list of running tasks cannot be filtered by worker: as many are looked through. */
const LOOKED_THROUGH = 500;

/** One worker: what it runs now, and what it is. */
export default function WorkerPage({ params }: { readonly params: Record<string, string> }) {
  const id = params["id"] ?? "";
  const query = useWorker(id);
  return (
    <Page title={query.data?.name ?? "Worker"} crumb={<Crumb id={id} />}>
      {hasCode(query.error, "unknown_worker") ? (
        <Empty
          title="There is no such worker"
          action={
            <Link className="btn" href={keptHref("/workers")}>
              All workers
            </Link>
          }
        >
          It may have stopped, or been lost more than an hour ago.
        </Empty>
      ) : (
        <Read query={query} what="The worker">
          {(worker) => <WorkerSheet worker={worker} />}
        </Read>
      )}
    </Page>
  );
}

function Crumb({ id }: { readonly id: string }) {
  return (
    <>
      <Link href={keptHref("/workers")}>Workers</Link>
      <Icon name="right" size={12} />
      <span className="id fg">{shortId(id)}</span>
      <CopyButton text={() => id} what="id" />
    </>
  );
}

function WorkerSheet({ worker }: { readonly worker: WorkerInfo }) {
  const { may } = useSession();
  const [, navigate] = useLocation();
  const { name, slots, running, lastSeenAt } = worker;
  const { glyph, word, note } = shownState(worker);
  return (
    <div className="split">
      <div>
        <div className="title-block">
          <h1>{name}</h1>
          <div className="title-meta">
            <span className={`state ${stateTone(glyph) ?? ""}`}>
              <StateGlyph state={glyph} />
              {word}
            </span>
            <span>
              {formatCount(running)} of {countOf(slots, "slot")} in use
            </span>
            <span className="muted">
              seen <Relative at={lastSeenAt} isPast />
            </span>
          </div>
          {note !== "" && <p className="worker-note">{note}</p>}
          {may("operate") && (
            <div className="title-acts">
              <WorkerActions worker={worker} onRemoved={() => navigate(keptHref("/workers"))} />
            </div>
          )}
        </div>
        <RunsNow worker={worker} />
      </div>
      <About worker={worker} />
    </div>
  );
}

const COLUMNS: readonly Column<Task>[] = [
  {
    head: "Task",
    width: "minmax(10rem, 1fr)",
    phone: "main",
    glyph: (task) => [glyphOf(task), stateWord(task.state)],
    cell: titleOf,
  },
  {
    head: "Agent",
    width: "minmax(6rem, 0.4fr)",
    className: "sub",
    phone: "below",
    cell: ({ agentId }) => agentId,
  },
  { head: "Lane", width: "6rem", className: "sub", from: "wide", cell: ({ lane }) => lane },
  {
    head: "Attempt",
    width: "4.5rem",
    className: "num",
    cell: ({ attempts }) => formatCount(attempts.length),
  },
  {
    head: "For",
    width: "5rem",
    className: "num",
    phone: "side",
    cell: ({ attempts, createdAt }) => <Span from={attempts.at(-1)?.startedAt ?? createdAt} />,
  },
];

function RunsNow({ worker }: { readonly worker: WorkerInfo }) {
  const { client } = useSession();
  const { id, agents, running, slots } = worker;
  const { data } = useQuery({
    queryKey: ["workers", id, "tasks", running],
    queryFn: async ({ signal }) => {
      const [agentId] = agents.length === 1 && agents[0] !== "*" ? agents : [];
      const { tasks } = await client.tasks.list(
        { state: ["running", "assigned"], limit: LOOKED_THROUGH, ...(agentId && { agentId }) },
        { signal },
      );
      return tasks.filter(({ attempts }) => attempts.at(-1)?.node === id);
    },
    meta: { live: (event) => event.type !== "task.progress" && serves(worker, event.agentId) },
  });
  const tasks = data ?? [];
  const missing = running - tasks.length;
  return (
    <section className="rule" aria-labelledby="runs-now">
      <div className="cell">
        <div className="cell-head">
          <h2 id="runs-now">Runs now</h2>
        </div>
        <SlotGauge
          lane={{ name: id, concurrency: slots, total: slots, running, waiting: 0, oldestWaitMs: null }}
        />
        {data !== undefined && tasks.length === 0 && <p className="sub">It runs no task.</p>}
      </div>
      {tasks.length > 0 && (
        <Records
          label="Tasks of the worker"
          columns={COLUMNS}
          rows={tasks}
          keyOf={({ taskId }) => taskId}
          href={({ taskId }) => `/tasks/${taskId}`}
        />
      )}
      {data !== undefined && tasks.length > 0 && missing > 0 && (
        <p className="list-end sub">{countOf(missing, "further task")}.</p>
      )}
    </section>
  );
}

function About({ worker }: { readonly worker: WorkerInfo }) {
  const { agents, version, runtime, doneLast10m, failedLast10m } = worker;
  return (
    <aside className="rail" aria-label="Details">
      <Facts title="Last 10 minutes">
        <Fact name="Done">{formatCount(doneLast10m)}</Fact>
        <Fact name="Failed">
          <span className={failedLast10m > 0 ? "state-failed" : ""}>{formatCount(failedLast10m)}</span>
        </Fact>
      </Facts>
      <Facts title="Details">
        <Fact name="Agents">
          {agents.includes("*")
            ? agentsText(worker)
            : agents.map((agentId) => (
                <div key={agentId}>
                  <TasksLink name="agentId" value={agentId} />
                </div>
              ))}
        </Fact>
        <Fact name="Version">{version ?? "not given"}</Fact>
        <Fact name="Runtime">{runtime ?? "not given"}</Fact>
        <Fact name="Labels">{labelsText(worker) || "none"}</Fact>
      </Facts>
    </aside>
  );
}

import { useState } from "react";
import type { AgentInfo, RotaClient, RotaEvent } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useLiveState } from "../../live/live.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { countOf, formatCount, formatDuration, formatShortCount } from "../../parts/format.ts";
import { Stale } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Link } from "../../parts/router.tsx";
import { useAction } from "../../parts/use-action.ts";
import { useNew } from "../../parts/use-new.ts";
import { keepPreviousData, useQuery } from "../../queries/use-query.ts";
import { tasksHref } from "../tasks/task-filters.ts";
import { useWorkers } from "../workers/use-workers.ts";
import { AgentForm } from "./agent-form.tsx";
import { type AgentRow, agentRows, type Recent, successRate } from "./agent-rows.ts";

const HOUR_MS = 3_600_000;
const STATS_EVERY_MS = 30_000;
const RUNNING_MAX = 1_000;
/** A tenant has 10 000 agents at most. */
const PAGES_MAX = 10;

const COLUMNS: readonly Column<AgentRow>[] = [
  { head: "Agent", width: "minmax(9rem, 1fr)", phone: "main", cell: ({ id }) => id },
  {
    head: "Executor",
    width: "minmax(6rem, 0.6fr)",
    className: "sub",
    phone: "below",
    // An agent of the configuration may be a function of the program, of which the server says nothing.
    cell: ({ info, id, workers, recent }) =>
      workers > 0 ? (
        <Link className="link over" href={`/workers?agentId=${encodeURIComponent(id)}`}>
          {countOf(workers, "worker")}
        </Link>
      ) : info === undefined ? (
        "not listed"
      ) : (
        (info.executor?.type ??
        (info.source !== "config" ? (
          "by kind of task"
        ) : (
          <>
            <span className="hide-s">–</span>
            <span className="only-s">{endedText(recent)}</span>
          </>
        )))
      ),
  },
  { head: "Lane", width: "6rem", className: "sub", from: "wide", cell: ({ info }) => info?.lane ?? "–" },
  {
    head: "Running",
    width: "5.5rem",
    className: "num",
    phone: "side",
    cell: ({ running, info }) => <Limited count={running} limit={info?.maxInflight} word="running" />,
  },
  {
    head: "Waiting",
    width: "6rem",
    className: "num",
    phone: "end",
    cell: ({ waiting, info }) => <Limited count={waiting} limit={info?.maxQueued} word="waiting" />,
  },
  {
    head: "Success, 24 h",
    width: "7.5rem",
    className: "num",
    cell: ({ recent }) => (recent && successRate(recent)) ?? "–",
  },
  {
    head: "Run p95",
    width: "5rem",
    className: "num",
    from: "wide",
    cell: ({ recent }) => formatDuration(recent?.runP95 ?? undefined),
  },
  {
    head: "Tokens",
    width: "4.5rem",
    className: "num sub",
    from: "wide",
    cell: ({ recent }) => (recent?.tokens ? formatShortCount(recent.tokens) : "–"),
  },
];

function endedText(recent: Recent | undefined): string {
  const rate = recent && successRate(recent);
  return rate === undefined ? "nothing ended in 24 h" : `${rate} done`;
}

function Limited({
  count,
  limit,
  word,
}: {
  readonly count: number | undefined;
  readonly limit: number | undefined;
  readonly word: string;
}) {
  if (count === undefined) return "–";
  const isFull = limit !== undefined && count >= limit;
  return (
    <span className={isFull ? "state-ask" : count === 0 ? "muted" : ""}>
      {formatCount(count)}
      {limit !== undefined && ` of ${formatCount(limit)}`}
      <span className="only-s"> {word}</span>
    </span>
  );
}

function isChange({ type }: RotaEvent): boolean {
  return type !== "task.progress";
}

/** Every agent: what it runs with, its limits, its work now, and how it did in the last day. */
export default function AgentsPage() {
  const { client, may } = useSession();
  const { isPaused } = useLiveState();
  const [open, setOpen] = useState<OpenForm>();
  const canChange = may("operate");
  const [isNew, setNew] = useNew("/agents", canChange);
  const agents = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => allAgents(client, signal),
  });
  const work = useQuery({
    queryKey: ["agents", "work"],
    queryFn: async ({ signal }) => {
      const [{ queue }, running] = await Promise.all([
        client.stats({ signal }),
        client.tasks.listRows({ state: ["running", "assigned"], limit: RUNNING_MAX }, { signal }),
      ]);
      return {
        waiting: queue.agentCounts,
        running: running.tasks.map(({ agentId }) => agentId),
        isCut: running.nextCursor !== null,
      };
    },
    placeholderData: keepPreviousData,
    meta: { live: isChange },
  });
  const workers = useWorkers();
  const stats = useQuery({
    queryKey: ["agents", "stats"],
    queryFn: ({ signal }) =>
      client.statsSeries(
        {
          metrics: ["done", "failed", "tokens", "runMs"],
          by: "agent",
          step: 3_600,
          from: new Date(Date.now() - 23 * HOUR_MS),
        },
        { signal },
      ),
    refetchInterval: isPaused ? false : STATS_EVERY_MS,
  });
  return (
    <Page
      title="Agents"
      actions={
        canChange && (
          <Button icon="plus" className="btn-main" onClick={() => setNew(true)}>
            <span>New agent</span>
          </Button>
        )
      }
    >
      <Read query={agents} what="The agents">
        {(list) => (
          <>
            <Stale error={work.error} what="What runs and waits" onRetry={() => void work.refetch()} />
            {work.data?.isCut && (
              <p className="list-end muted">
                Of the running tasks only the newest {formatCount(RUNNING_MAX)} are counted.
              </p>
            )}
            <Records
              label="Agents"
              columns={COLUMNS}
              rows={agentRows({
                agents: list,
                workers: workers.data?.workers ?? [],
                ...work.data,
                stats: stats.data,
              })}
              keyOf={({ id }) => id}
              href={({ id }) => tasksHref({ agentId: id })}
              actions={
                canChange
                  ? ({ info }) => info !== undefined && <RowActions agent={info} onOpen={setOpen} />
                  : undefined
              }
              actionsWidth="6rem"
            />
          </>
        )}
      </Read>
      {open?.remove !== undefined && <DeleteAgent id={open.remove} onClose={() => setOpen(undefined)} />}
      {open?.edit !== undefined && <AgentForm agent={open.edit} onClose={() => setOpen(undefined)} />}
      {isNew && <AgentForm onClose={() => setNew(false)} />}
    </Page>
  );
}

interface OpenForm {
  readonly edit?: AgentInfo;
  readonly remove?: string;
}

interface RowActionsProps {
  readonly agent: AgentInfo;
  readonly onOpen: (form: OpenForm) => void;
}

function RowActions({ agent, onOpen }: RowActionsProps) {
  if (agent.source !== "stored") {
    return <span className="muted hide-s">{agent.source === "config" ? "configuration" : "built in"}</span>;
  }
  return (
    <>
      <Button className="btn-quiet" onClick={() => onOpen({ edit: agent })}>
        Edit<span className="vh"> {agent.id}</span>
      </Button>
      <IconButton icon="bin" label={`Delete ${agent.id}`} onClick={() => onOpen({ remove: agent.id })} />
    </>
  );
}

async function allAgents(client: RotaClient, signal: AbortSignal): Promise<readonly AgentInfo[]> {
  const all: AgentInfo[] = [];
  for (let page = 0, cursor: string | null | undefined; page < PAGES_MAX && cursor !== null; page += 1) {
    const { agents, nextCursor } = await client.agents.list(cursor ? { cursor } : {}, { signal });
    all.push(...agents);
    cursor = nextCursor;
  }
  return all;
}

function DeleteAgent({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const { client } = useSession();
  const { mutate } = useAction(() => client.agents.delete(id), {
    said: () => `Deleted agent ${id}`,
    changes: ["agents"],
  });
  return (
    <Confirm
      title={`Delete agent ${id}?`}
      action="Delete agent"
      onConfirm={() => mutate(undefined)}
      onClose={onClose}
    >
      <p>Its tasks stay. Those that wait then run with the executor of their kind.</p>
    </Confirm>
  );
}

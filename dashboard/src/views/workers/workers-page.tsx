import type { WorkerInfo } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { ChipText } from "../../parts/chip.tsx";
import { formatCount } from "../../parts/format.ts";
import { NoMatch } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Relative } from "../../parts/time.tsx";
import { useFilters } from "../../parts/use-filters.ts";
import { StartWorker } from "./start-worker.tsx";
import { useWorkers } from "./use-workers.ts";
import { WorkerActions } from "./worker-actions.tsx";
import { agentsText, labelsText, serves, shownState, versionText } from "./worker-text.ts";
import "./workers.css";

const FILTERS = { agentId: undefined } as const;

const COLUMNS: readonly Column<WorkerInfo>[] = [
  {
    head: "Worker",
    width: "minmax(9rem, 1fr)",
    phone: "main",
    glyph: (worker) => [shownState(worker).glyph],
    cell: ({ name }) => name,
  },
  {
    head: "State",
    width: "6rem",
    phone: "side",
    cell: (worker) => <span title={shownState(worker).note}>{shownState(worker).word}</span>,
  },
  {
    head: "Agents",
    width: "minmax(7rem, 1fr)",
    className: "sub",
    phone: "below",
    cell: agentsText,
  },
  {
    head: "Version",
    width: "minmax(6rem, 0.6fr)",
    className: "sub",
    from: "wide",
    cell: versionText,
  },
  {
    head: "Labels",
    width: "minmax(6rem, 1fr)",
    className: "sub",
    from: "widest",
    cell: (worker) => labelsText(worker) || "–",
  },
  {
    head: "Running",
    width: "5.5rem",
    className: "num",
    phone: "end",
    cell: ({ running, slots }) => (
      <span className={running === 0 ? "muted" : ""}>
        {formatCount(running)} of {formatCount(slots)}
      </span>
    ),
  },
  {
    head: "Last 10 min",
    width: "9rem",
    className: "num",
    cell: ({ doneLast10m, failedLast10m }) => (
      <>
        <span className={doneLast10m === 0 ? "muted" : ""}>{formatCount(doneLast10m)} done</span>
        {failedLast10m > 0 && (
          <>
            , <span className="state-failed">{formatCount(failedLast10m)} failed</span>
          </>
        )}
      </>
    ),
  },
  {
    head: "Last seen",
    width: "5.5rem",
    className: "num muted",
    from: "wide",
    cell: ({ lastSeenAt }) => <Relative at={lastSeenAt} isPast />,
  },
];

/** The processes elsewhere that pull tasks. */
export default function WorkersPage() {
  const { may } = useSession();
  const { filters, count, set, clear } = useFilters(FILTERS);
  const query = useWorkers();
  const { agentId } = filters;
  return (
    <Page title="Workers">
      {(count > 0 || (query.data?.workers.length ?? 0) > 0) && (
        <div className="bar" role="group" aria-label="Filters">
          <ChipText label="Agent" value={agentId} onChange={(id) => set({ agentId: id })} />
        </div>
      )}
      <Read query={query} what="The workers">
        {({ workers }) => {
          const rows = workers.filter((worker) => agentId === undefined || serves(worker, agentId));
          if (workers.length === 0) return <StartWorker agentId={agentId} />;
          if (rows.length === 0) return <NoMatch what="worker" filters={count} onClear={clear} />;
          return (
            <Records
              label="Workers"
              columns={COLUMNS}
              rows={rows}
              keyOf={({ id }) => id}
              href={({ id }) => `/workers/${id}`}
              actions={may("operate") ? (worker) => <WorkerActions worker={worker} isInList /> : undefined}
            />
          );
        }}
      </Read>
    </Page>
  );
}

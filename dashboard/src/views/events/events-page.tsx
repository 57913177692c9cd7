import type { EventPageFilter, EventType, RotaEvent } from "../../../../src/client/index.ts";
import { Page } from "../../frame/page.tsx";
import { ChipSelect, ChipText } from "../../parts/chip.tsx";
import { shortId } from "../../parts/format.ts";
import { NewPill } from "../../parts/new-pill.tsx";
import { Empty, NoMatch } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Clock } from "../../parts/time.tsx";
import { useFilters } from "../../parts/use-filters.ts";
import { glyphOfEvent, textOfEvent, wordOf } from "./event-text.ts";
import { JumpToTime } from "./jump-to-time.tsx";
import { useTail } from "./use-tail.ts";

const TYPES = [
  ...[
    "created",
    "started",
    "progress",
    "retrying",
    "preempted",
    "completed",
    "failed",
    "cancelled",
    "rejected",
  ].map((type) => `task.${type}`),
  "batch.completed",
] as readonly EventType[];
const FILTERS = { type: TYPES, taskId: undefined, before: undefined };

const COLUMNS: readonly Column<RotaEvent>[] = [
  {
    head: "Event",
    width: "10rem",
    phone: "main",
    glyph: (event) => [glyphOfEvent(event)],
    cell: (event) => (
      <>
        {wordOf(event)} <span className="only-s sub">{event.agentId}</span>
      </>
    ),
  },
  {
    head: "What it says",
    width: "minmax(8rem, 1fr)",
    phone: "below",
    cell: (event) => (
      // A task that made way for another has an error, too, but did nothing wrong.
      <span className={event.error === undefined || event.type === "task.preempted" ? "sub" : "state-failed"}>
        {textOfEvent(event) || "–"}
      </span>
    ),
  },
  { head: "Task", width: "9rem", className: "id", cell: ({ taskId }) => shortId(taskId) },
  { head: "Agent", width: "8rem", cell: ({ agentId }) => agentId },
  { head: "Lane", width: "6rem", className: "sub", from: "wide", cell: ({ lane }) => lane },
  {
    head: "Time",
    width: "8rem",
    className: "num muted",
    phone: "side",
    cell: ({ timestamp }) => <Clock at={timestamp} />,
  },
];

/** All that happened to tasks, newest first. New events appear on top. */
export default function EventsPage() {
  const { filters, set, clear, count } = useFilters(FILTERS);
  const filter: EventPageFilter = {
    ...(filters.type !== undefined && { type: filters.type as EventType }),
    ...(filters.taskId !== undefined && { taskId: filters.taskId }),
    ...(filters.before !== undefined && { before: Number(filters.before) }),
  };
  const { query, events, newCount, isOutdated, showNew } = useTail(filter);
  return (
    <Page title="Events">
      <div className="bar" role="group" aria-label="Filters">
        <ChipSelect
          label="Type"
          value={filters.type}
          options={TYPES.map((type) => [type, wordOf({ type })])}
          onChange={(type) => set({ type })}
        />
        <ChipText
          label="Task"
          value={filters.taskId}
          onChange={(taskId) => set({ taskId })}
          placeholder="any id"
        />
        <JumpToTime isSet={filters.before !== undefined} onJump={(before) => set({ before })} />
      </div>
      <Read query={query} what="The events">
        {() =>
          events.length === 0 && !query.hasNextPage ? (
            count > 0 ? (
              <NoMatch what="event" filters={count} onClear={clear} />
            ) : (
              <Empty title="Nothing happened yet">Every step of every task is listed here.</Empty>
            )
          ) : (
            <div className="list-wrap">
              <NewPill count={newCount} isOutdated={isOutdated} onShow={showNew} />
              <Records
                label="Events"
                columns={COLUMNS}
                rows={events}
                keyOf={({ seq }) => seq}
                href={({ taskId }) => `/tasks/${taskId}`}
                onMore={query.hasNextPage ? query.fetchNextPage : undefined}
                isFetching={query.isFetchingNextPage}
              />
            </div>
          )
        }
      </Read>
    </Page>
  );
}

import type { TaskRow } from "../../../../src/client/index.ts";
import { formatShortCount, shortId } from "../../parts/format.ts";
import type { Column as ListColumn } from "../../parts/records.tsx";
import { type Glyph, stateTone, stateWord } from "../../parts/state.tsx";
import { priorityWord } from "../../parts/task-text.ts";
import { Moment, Span } from "../../parts/time.tsx";
import type { Column } from "./columns.tsx";

interface TaskColumn extends ListColumn<TaskRow> {
  /** Undefined: it is always shown. */
  readonly name?: Column;
}

/** The columns of the list of tasks, without the hidden ones. The last one depends on the order. */
export function taskColumns(
  hidden: readonly Column[],
  order: string | undefined,
  sort?: string,
): readonly TaskColumn[] {
  const isByEnd = order === "completed";
  const last: TaskColumn = {
    head: isByEnd ? "Ended" : "Created",
    width: "4.25rem",
    className: "num c-made muted",
    sort: sort !== undefined ? undefined : order === "oldest" ? "ascending" : "descending",
    cell: ({ createdAt, completedAt }) => <Moment at={isByEnd ? (completedAt ?? createdAt) : createdAt} />,
  };
  return [...COLUMNS, last]
    .filter(({ name }) => name === undefined || !hidden.includes(name))
    .map((column) => (column.name === "run" && sort === "run" ? { ...column, sort: "descending" } : column));
}

const COLUMNS: readonly TaskColumn[] = [
  {
    head: "Task",
    width: "minmax(12rem, 1fr)",
    phone: "main",
    className: "c-title",
    glyph: (task) => {
      const state = glyphOfRow(task);
      return [state, stateWord(state)];
    },
    cell: ({ title, taskId }) => title || shortId(taskId),
  },
  {
    name: "id",
    head: "Id",
    width: "8.25rem",
    className: "id",
    from: "widest",
    cell: ({ taskId }) => shortId(taskId),
  },
  {
    name: "agent",
    head: "Agent",
    width: "5.5rem",
    phone: "end",
    cell: ({ agentId }) => <span title={agentId}>{agentId}</span>,
  },
  { name: "lane", head: "Lane", width: "4.5rem", className: "sub", from: "wide", cell: ({ lane }) => lane },
  {
    name: "prio",
    head: "Priority",
    width: "4rem",
    className: "sub",
    from: "widest",
    cell: ({ priority }) => priorityWord(priority),
  },
  {
    name: "why",
    head: "State",
    width: "11.25rem",
    phone: "below",
    cell: (task) => {
      const glyph = glyphOfRow(task);
      const tone = stateTone(glyph);
      return (
        <span className={tone === undefined || tone === "state-run" ? "sub" : tone}>
          {task.error ?? stateWord(glyph)}
        </span>
      );
    },
  },
  {
    name: "wait",
    head: "Wait",
    width: "4rem",
    className: "num",
    cell: (task) => <Wait task={task} />,
  },
  {
    name: "run",
    head: "Run",
    width: "4rem",
    className: "num",
    phone: "side",
    cell: (task) => <Run task={task} />,
  },
  {
    name: "tok",
    head: "Tokens",
    width: "3.5rem",
    className: "num sub",
    from: "wide",
    cell: ({ tokens }) => formatShortCount(tokens),
  },
  {
    name: "tries",
    head: "Attempts",
    width: "4.25rem",
    className: "num sub",
    from: "widest",
    cell: ({ attempts }) => attempts || "–",
  },
];

/** A row does not contain the time of its retry, but the number of its attempts. */
function glyphOfRow({ state, attempts }: TaskRow): Glyph {
  return state === "delayed" && attempts > 0 ? "retry" : state;
}

/** How long the task waited for its first start. A task that is not due yet does not wait. */
export function Wait({ task }: { readonly task: TaskRow }) {
  const { state, createdAt, startedAt, completedAt, attempts } = task;
  if (startedAt !== undefined) return <Span from={createdAt} to={startedAt} />;
  if (state === "rejected" || (state === "delayed" && attempts === 0)) return "–";
  return <Span from={createdAt} to={completedAt} />;
}

/** The time since its first start. A task between two attempts does not run. A phone has one column: there it shows the wait until then. */
export function Run({ task }: { readonly task: TaskRow }) {
  const { state, startedAt, completedAt } = task;
  const isRunning = state === "running" || state === "assigned";
  if (startedAt === undefined || (completedAt === undefined && !isRunning)) {
    return (
      <>
        <span className="hide-s">–</span>
        <span className="only-s">
          <Wait task={task} />
        </span>
      </>
    );
  }
  return <Span from={startedAt} to={completedAt} />;
}

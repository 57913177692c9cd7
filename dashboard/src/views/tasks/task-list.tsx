import { useEffect, useMemo, useRef, useState } from "react";
import { useKeys } from "../../keys/use-keys.ts";
import { formatCount } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { useLocation } from "../../parts/router.tsx";
import { useRowsOnScreen } from "../../parts/use-rows-on-screen.ts";
import type { Column } from "./columns.tsx";
import { TaskRow } from "./task-row.tsx";
import type { Selection } from "./use-selection.ts";
import type { TaskPages } from "./use-task-pages.ts";

/** The next page is fetched this many rows before the end. */
const AHEAD_ROWS = 40;
/** A list that is scrolled by less than this counts as at its top. */
const TOP_PX = 60;

interface TaskListProps {
  readonly pages: TaskPages;
  readonly selection: Selection;
  readonly canSelect: boolean;
  /** On a phone: whether the checkboxes are shown. */
  readonly isSelecting: boolean;
  readonly hidden: readonly Column[];
  /** Undefined: newest first. */
  readonly order: string | undefined;
}

/** Only the rows on the screen are rendered, however many there are. */
export function TaskList({ pages, selection, canSelect, isSelecting, hidden, order }: TaskListProps) {
  const { tasks, hasMore, isCut, loadMore, newCount, showNew, setAtTop } = pages;
  const box = useRef<HTMLDivElement>(null);
  /** The id, since rows appear and disappear above it. */
  const [cursorId, setCursorId] = useState<string>();
  const [, navigate] = useLocation();
  const { from, to, rowPx, scrollTo } = useRowsOnScreen(box, tasks.length);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever the last row that is drawn changes, or rows came.
  useEffect(() => {
    if (hasMore && to >= tasks.length - AHEAD_ROWS) loadMore();
  }, [to, tasks.length, hasMore]);

  useEffect(() => {
    const scrolled = () => setAtTop(scrollY < TOP_PX);
    addEventListener("scroll", scrolled, { passive: true });
    return () => removeEventListener("scroll", scrolled);
  }, [setAtTop]);

  const cursor = useMemo(
    () => (cursorId === undefined ? -1 : tasks.findIndex(({ taskId }) => taskId === cursorId)),
    [tasks, cursorId],
  );
  const move = (step: number) => {
    const next = cursor === -1 ? 0 : Math.min(tasks.length - 1, Math.max(0, cursor + step));
    setCursorId(tasks[next]?.taskId);
    scrollTo(next);
  };
  const task = tasks[cursor];
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(task === undefined
      ? {}
      : {
          enter: () => navigate(`/tasks/${task.taskId}`),
          ...(canSelect ? { x: () => selection.toggle(cursor, false) } : {}),
        }),
  });

  return (
    <div className="list-wrap">
      {newCount > 0 && (
        <button type="button" className="pill-new" onClick={showNew}>
          {formatCount(newCount)} new
        </button>
      )}
      <div
        className={[
          "list cols-tasks",
          isSelecting && "selecting",
          ...hidden.map((name) => `no-${name}`),
        ].join(" ")}
        role="table"
        aria-label="Tasks"
        aria-rowcount={hasMore || isCut ? -1 : tasks.length + 1}
      >
        <Head selection={selection} canSelect={canSelect} order={order} />
        <div className="lbody" role="rowgroup" ref={box} style={{ height: tasks.length * rowPx }}>
          {tasks.slice(from, to).map((row, at) => (
            <TaskRow
              key={row.taskId}
              task={row}
              index={from + at}
              isSelected={selection.isMatching || selection.ids.has(row.taskId)}
              isCursor={from + at === cursor}
              canSelect={canSelect}
              isByEnd={order === "completed"}
              top={(from + at) * rowPx}
              onSelect={selection.toggle}
            />
          ))}
        </div>
      </div>
      {isCut && (
        <p className="list-end muted">
          Only the first {formatCount(tasks.length)} are shown. Add a filter to see others.
        </p>
      )}
    </div>
  );
}

function Head({ selection, canSelect, order }: Pick<TaskListProps, "selection" | "canSelect" | "order">) {
  const { ids, isAll, toggleAll } = selection;
  return (
    <div className="lhead" role="row">
      <span role="columnheader" className="over">
        {canSelect ? (
          <label className="check-hit">
            <input
              type="checkbox"
              className="check"
              aria-label="Select all that are loaded"
              checked={isAll}
              ref={(input) => {
                if (input !== null) input.indeterminate = ids.size > 0 && !isAll;
              }}
              onChange={toggleAll}
            />
          </label>
        ) : (
          <span className="vh">Selection</span>
        )}
      </span>
      <span role="columnheader">
        <span className="vh">State</span>
      </span>
      <span role="columnheader">Task</span>
      <span role="columnheader" className="wide c-id">
        Id
      </span>
      <span role="columnheader" className="c-agent">
        Agent
      </span>
      <span role="columnheader" className="c-lane">
        Lane
      </span>
      <span role="columnheader" className="wide c-prio">
        Priority
      </span>
      <span role="columnheader" className="c-why">
        State
      </span>
      <span role="columnheader" className="num c-wait">
        Wait
      </span>
      <span role="columnheader" className="num c-run">
        Run
      </span>
      <span role="columnheader" className="num c-tok">
        Tokens
      </span>
      <span role="columnheader" className="wide num c-tries">
        Attempts
      </span>
      <span role="columnheader" className="num" aria-sort={order === "oldest" ? "ascending" : "descending"}>
        {order === "completed" ? "Ended" : "Created"} <Icon name="sort" size={12} />
      </span>
    </div>
  );
}

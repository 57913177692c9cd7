import { useEffect, useMemo } from "react";
import { formatCount, shortId } from "../../parts/format.ts";
import { NewPill } from "../../parts/new-pill.tsx";
import { Records } from "../../parts/records.tsx";
import type { Column } from "./columns.tsx";
import { taskColumns } from "./task-columns.tsx";
import type { Selection } from "./use-selection.ts";
import type { TaskPages } from "./use-task-pages.ts";

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

/** The tasks that match, with checkboxes for those who may act on them. */
export function TaskList({ pages, selection, canSelect, isSelecting, hidden, order }: TaskListProps) {
  const { tasks, hasMore, isCut, loadMore, newCount, showNew, setAtTop } = pages;
  const { ids, isAll, isMatching, toggle, toggleAll } = selection;
  const columns = useMemo(() => taskColumns(hidden, order), [hidden, order]);
  useEffect(() => {
    const scrolled = () => setAtTop(scrollY < TOP_PX);
    addEventListener("scroll", scrolled, { passive: true });
    return () => removeEventListener("scroll", scrolled);
  }, [setAtTop]);
  const isSelected = ({ taskId }: { readonly taskId: string }) => isMatching || ids.has(taskId);
  return (
    <div className="list-wrap">
      <NewPill count={newCount} onShow={showNew} />
      <Records
        label="Tasks"
        columns={columns}
        rows={tasks}
        keyOf={({ taskId }) => taskId}
        href={({ taskId }) => `/tasks/${taskId}`}
        onMore={hasMore || isCut ? loadMore : undefined}
        isEndless
        select={
          canSelect
            ? {
                all: (
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
                ),
                one: (task, index) => (
                  <label className="check-hit">
                    <input
                      type="checkbox"
                      className="check"
                      aria-label={`Select ${shortId(task.taskId)}`}
                      checked={isSelected(task)}
                      onChange={() => {}}
                      onClick={(event) => toggle(index, event.shiftKey)}
                    />
                  </label>
                ),
                isSelected,
                isShown: isSelecting,
                keys: (index) => ({ x: () => toggle(index, false) }),
              }
            : undefined
        }
      />
      {isCut && (
        <p className="list-end muted">
          Only the first {formatCount(tasks.length)} are shown. Add a filter to see others.
        </p>
      )}
    </div>
  );
}

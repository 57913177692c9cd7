import { useEffect, useMemo } from "react";
import { Button } from "../../parts/button.tsx";
import { formatCount, shortId } from "../../parts/format.ts";
import { Heading } from "../../parts/heading.ts";
import { NewPill } from "../../parts/new-pill.tsx";
import { Fault } from "../../parts/notices.tsx";
import { Records } from "../../parts/records.tsx";
import { type Entry, NONE } from "./arrange.ts";
import type { Column } from "./columns.tsx";
import { taskColumns } from "./task-columns.tsx";
import type { Selection } from "./use-selection.ts";
import type { TaskPages } from "./use-task-pages.ts";

/** A list that is scrolled by less than this counts as at its top. */
const TOP_PX = 60;

interface TaskListProps {
  readonly pages: TaskPages;
  /** The loaded tasks in their order, with the headings of groups. */
  readonly entries: readonly Entry[];
  readonly selection: Selection;
  readonly canSelect: boolean;
  /** On a phone: whether the checkboxes are shown. */
  readonly isSelecting: boolean;
  readonly hidden: readonly Column[];
  /** Undefined: newest first. */
  readonly order: string | undefined;
  /** Undefined: as the server sent them. */
  readonly sort: string | undefined;
  readonly group: string | undefined;
}

/** The tasks that match, with checkboxes for roles that may act on them. */
export function TaskList(props: TaskListProps) {
  const { pages, entries, selection, canSelect, isSelecting, hidden, order, sort, group } = props;
  const { tasks, hasMore, isCut, loadMore, moreError, retryMore, searchOn } = pages;
  const { newCount, isOutdated, showNew, setAtTop } = pages;
  const { ids, isAll, isMatching, toggle, toggleAll } = selection;
  const columns = useMemo(() => taskColumns(hidden, order, sort), [hidden, order, sort]);
  // Further rows would move those on the screen, so they come only when the user wants them.
  const isArranged = sort !== undefined || group !== undefined;
  // Headings cannot be selected, so they do not count.
  const rowIndex = (at: number) =>
    group === undefined ? at : entries.slice(0, at).filter((entry) => !(entry instanceof Heading)).length;
  useEffect(() => {
    const scrolled = () => setAtTop(scrollY < TOP_PX);
    addEventListener("scroll", scrolled, { passive: true });
    return () => removeEventListener("scroll", scrolled);
  }, [setAtTop]);
  const isSelected = ({ taskId }: { readonly taskId: string }) => isMatching || ids.has(taskId);
  return (
    <div className="list-wrap">
      <NewPill count={newCount} isOutdated={isOutdated} onShow={showNew} />
      <Records
        label="Tasks"
        columns={columns}
        rows={entries}
        keyOf={({ taskId }) => taskId}
        heading={(of) => <Group of={of} name={group ?? ""} hasMore={hasMore} />}
        href={({ taskId }) => `/tasks/${taskId}`}
        onMore={searchOn === undefined && (hasMore || isCut) ? loadMore : undefined}
        isEndless={!isArranged}
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
                      onClick={(event) => toggle(rowIndex(index), event.shiftKey)}
                    />
                  </label>
                ),
                isSelected,
                isShown: isSelecting,
                keys: (index) => ({ x: () => toggle(rowIndex(index), false) }),
              }
            : undefined
        }
      />
      {moreError !== null && <Fault error={moreError} what="Further tasks" onRetry={retryMore} />}
      {searchOn !== undefined && (
        <p className="list-end muted">
          {tasks.length === 0 ? "No task matches so far." : "Few tasks match so far."} There are more to
          search. <Button onClick={searchOn}>Search on</Button>
        </p>
      )}
      {isArranged && hasMore && tasks.length > 0 && (
        <p className="list-end muted">
          {sort !== undefined ? "Sorted" : "Grouped"} among the {formatCount(tasks.length)} tasks that are
          loaded.
        </p>
      )}
      {isCut && (
        <p className="list-end muted">
          Only the first {formatCount(tasks.length)} are shown. Add a filter to see others.
        </p>
      )}
    </div>
  );
}

interface GroupProps {
  readonly of: Heading;
  /** The key of the metadata. */
  readonly name: string;
  readonly hasMore: boolean;
}

function Group({ of: { value, count }, name, hasMore }: GroupProps) {
  return (
    <>
      <span className="sub">{value === NONE ? `Without ${name}` : name}</span>{" "}
      {value !== NONE && <b>{value}</b>}{" "}
      <span className="muted">
        {formatCount(count)}
        {hasMore && " loaded"}
      </span>
    </>
  );
}

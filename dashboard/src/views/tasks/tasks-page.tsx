import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { TaskRow } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { Button } from "../../parts/button.tsx";
import { Heading } from "../../parts/heading.ts";
import { Empty, Fault, Loading, NoMatch, Stale } from "../../parts/notices.tsx";
import { useFilters } from "../../parts/use-filters.ts";
import { useKept } from "../../parts/use-kept.ts";
import { useNew } from "../../parts/use-new.ts";
import { arrange } from "./arrange.ts";
import { BulkBar } from "./bulk-bar.tsx";
import { BulkProgress, currentBulk } from "./bulk-progress.tsx";
import { Columns, parseColumns } from "./columns.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { NewTask } from "./new-task.tsx";
import { countFilters, TASK_FILTERS } from "./task-filters.ts";
import { TaskList } from "./task-list.tsx";
import { TaskTabs } from "./task-tabs.tsx";
import { useSelection } from "./use-selection.ts";
import { useTaskPages } from "./use-task-pages.ts";

/** All tasks, live, by default newest first. */
export default function TasksPage() {
  const { may } = useSession();
  const filtering = useFilters(TASK_FILTERS);
  const pages = useTaskPages(filtering.filters);
  const { order, sort, group } = filtering.filters;
  const entries = useMemo(
    () => arrange(pages.tasks, { sort, group }, Date.now()),
    [pages.tasks, sort, group],
  );
  const selection = useSelection(
    useMemo(
      () =>
        entries === pages.tasks
          ? pages.tasks
          : entries.filter((entry): entry is TaskRow => !(entry instanceof Heading)),
      [entries, pages.tasks],
    ),
  );
  const [hidden, setHidden] = useKept("columns", parseColumns);
  const bulkId = useSyncExternalStore(currentBulk.subscribe, currentBulk.get);
  // A phone has no room for checkboxes beside the states: they replace them while the user selects.
  const [isSelecting, setSelecting] = useState(false);
  const canSubmit = may("submit");
  const [isNew, setNew] = useNew("/tasks", canSubmit);
  const { clear } = selection;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is selected is not in another list.
  useEffect(() => clear(), [filtering.filters, clear]);
  return (
    <Page
      title="Tasks"
      actions={
        canSubmit && (
          <Button icon="plus" className="btn-main" onClick={() => setNew(true)}>
            <span>New task</span>
          </Button>
        )
      }
    >
      <TaskTabs />
      <FilterBar filtering={filtering}>
        {may("operate") && (
          <Button
            className="btn-quiet only-phone"
            aria-pressed={isSelecting}
            onClick={() => {
              if (isSelecting) selection.clear();
              setSelecting(!isSelecting);
            }}
          >
            Select
          </Button>
        )}
        <Columns hidden={hidden} onChange={setHidden} />
      </FilterBar>
      {pages.isLoading ? (
        <Loading what="tasks" />
      ) : pages.error !== null && pages.tasks.length === 0 ? (
        <Fault error={pages.error} what="The tasks" onRetry={pages.reload} />
      ) : pages.tasks.length === 0 && !pages.hasMore ? (
        <NoTasks
          count={countFilters(filtering.filters)}
          onClear={filtering.clear}
          onNew={canSubmit ? () => setNew(true) : undefined}
        />
      ) : (
        <>
          <Stale error={pages.error} what="The tasks" onRetry={pages.reload} />
          <TaskList
            pages={pages}
            entries={entries}
            selection={selection}
            canSelect={may("operate")}
            isSelecting={isSelecting}
            hidden={hidden}
            order={order}
            sort={sort}
            group={group}
          />
        </>
      )}
      {bulkId !== undefined ? (
        <BulkProgress id={bulkId} onDone={pages.reload} />
      ) : (
        selection.ids.size > 0 && (
          <BulkBar
            tasks={pages.tasks}
            selection={selection}
            filters={filtering.filters}
            hasMore={pages.hasMore || pages.isCut}
          />
        )
      )}
      {isNew && <NewTask onClose={() => setNew(false)} />}
    </Page>
  );
}

interface NoTasksProps {
  readonly count: number;
  readonly onClear: () => void;
  readonly onNew: (() => void) | undefined;
}

function NoTasks({ count, onClear, onNew }: NoTasksProps) {
  if (count > 0) return <NoMatch what="task" filters={count} onClear={onClear} />;
  return (
    <Empty
      title="No tasks yet"
      action={
        onNew && (
          <Button icon="plus" onClick={onNew}>
            Submit the first one
          </Button>
        )
      }
    >
      What is submitted here, over HTTP, from a program or by a schedule appears in this list at once.
    </Empty>
  );
}

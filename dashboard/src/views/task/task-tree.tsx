import type { CSSProperties } from "react";
import type { RotaClient, Task } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { countOf } from "../../parts/format.ts";
import { Link } from "../../parts/router.tsx";
import { glyphOf, StateGlyph, stateWord } from "../../parts/state.tsx";
import { titleOf } from "../../parts/task-text.ts";
import { useQuery } from "../../queries/use-query.ts";
import "./task-tree.css";
import { treeRows } from "./tree-rows.ts";

/** How many tasks of a tree are read. */
const READ_MAX = 200;
/** Deeper ones are no further to the right. */
const LEVELS_MAX = 8;

/** The tree that a task is in: its root and what was submitted within that. Undefined: it is alone, or not read yet. */
export function useTree({ taskId, rootTaskId = taskId, state }: Task) {
  const { client } = useSession();
  const { data }: { readonly data: Tree | undefined } = useQuery({
    queryKey: ["tree", rootTaskId],
    queryFn: ({ signal }) => readTree(client, rootTaskId, signal),
    meta: {
      live: (event): boolean =>
        // Events do not name the tree: any new task may be part of it, as long as one of its tasks runs and can submit it.
        event.type === "task.created"
          ? state === "running" || data?.tasks.some((task) => task.state === "running") === true
          : event.type !== "task.progress" && known(data?.tasks, event.taskId),
    },
  });
  return data !== undefined && data.tasks.length > 1 ? data : undefined;
}

function known(tasks: readonly Task[] | undefined, taskId: string): boolean {
  return tasks?.some((task) => task.taskId === taskId) ?? false;
}

interface Tree {
  readonly tasks: readonly Task[];
  /** There are more than were read. */
  readonly hasMore: boolean;
}

async function readTree(client: RotaClient, rootTaskId: string, signal: AbortSignal): Promise<Tree> {
  const [root, page] = await Promise.all([
    // It may no longer be kept.
    client.tasks.get(rootTaskId, { signal }).catch(() => undefined),
    client.tasks.list({ rootTaskId, order: "oldest", limit: READ_MAX }, { signal }),
  ]);
  const tasks = root === undefined ? page.tasks : [root, ...page.tasks];
  return { tasks, hasMore: page.nextCursor !== null };
}

interface TaskTreeProps {
  readonly tree: Tree;
  readonly taskId: string;
}

/** The root and all below it, one line for each task. */
export function TaskTree({ tree: { tasks, hasMore }, taskId }: TaskTreeProps) {
  return (
    <section className="cell rule" id="tree" aria-labelledby="tree-head">
      <div className="cell-head">
        <h2 id="tree-head">Tree</h2>
        <span className="muted">
          {hasMore ? `the first ${countOf(tasks.length, "task")}` : countOf(tasks.length, "task")}
        </span>
      </div>
      <ul className="tree">
        {treeRows(tasks).map(({ task, level }) => (
          <li key={task.taskId} style={{ "--level": Math.min(level, LEVELS_MAX) } as CSSProperties}>
            <StateGlyph state={glyphOf(task)} label={stateWord(task.state)} />
            {task.taskId === taskId ? (
              <b className="cut" aria-current="true">
                {titleOf(task)}
              </b>
            ) : (
              <Link className="cut" href={`/tasks/${task.taskId}`}>
                {titleOf(task)}
              </Link>
            )}
            <span className="muted cut">{task.agentId}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

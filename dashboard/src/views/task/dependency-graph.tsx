import { useMemo } from "react";
import type { Batch, Task } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { shortId } from "../../parts/format.ts";
import { Link } from "../../parts/router.tsx";
import { titleOf } from "../../parts/task-text.ts";
import { useTasks } from "../../parts/use-tasks.ts";
import { useQuery } from "../../queries/use-query.ts";
import { Graph } from "./graph.tsx";
import type { GraphEdge, GraphNode } from "./graph-layout.ts";

/** A larger graph is not readable. */
const NODES_MAX = 60;

/**
 * The tasks that a task depends on, and those of its batch that depend on it. The API cannot list the tasks outside of the batch
 * that do.
 */
export function DependencyGraph({ task }: { readonly task: Task }) {
  return task.batchId === undefined ? <Named task={task} /> : <OfBatch task={task} batchId={task.batchId} />;
}

function OfBatch({ task, batchId }: { readonly task: Task; readonly batchId: string }) {
  const { client } = useSession();
  const { data: batch, isPending } = useQuery({
    queryKey: ["batch", batchId],
    queryFn: ({ signal }) => client.tasks.getBatch(batchId, { signal }),
    meta: { live: (event) => event.batchId === batchId },
  });
  const graph = useMemo(() => (batch === undefined ? undefined : related(batch, task)), [batch, task]);
  // Waits for the batch: the graph of the task alone would need further requests.
  if (isPending) return null;
  if (graph === undefined || graph.edges.length === 0) return <Named task={task} />;
  return <Section task={task} {...graph} />;
}

/** All direct and indirect dependencies and dependants of a task, within its batch. */
function related({ tasks, edges }: Batch, task: Task): { nodes: GraphNode[]; edges: GraphEdge[] } {
  const near = new Set([task.taskId]);
  const spread = (next: (edge: GraphEdge) => readonly [string, string]) => {
    const seen = new Set([task.taskId]);
    for (const id of seen) {
      for (const edge of edges) {
        const [from, to] = next(edge);
        if (from === id) seen.add(to);
      }
      if (seen.size > NODES_MAX) break;
    }
    for (const id of seen) near.add(id);
  };
  spread(({ from, to }) => [from, to]);
  spread(({ from, to }) => [to, from]);
  const nodes = tasks
    .filter(({ taskId }) => near.has(taskId))
    .map((each) => ({
      id: each.taskId,
      title: each.taskId === task.taskId ? titleOf(task) : (each.key ?? shortId(each.taskId)),
      note: each.taskId === task.taskId ? "this task" : each.agentId,
      state: each.state,
    }));
  return { nodes, edges: edges.filter(({ from, to }) => near.has(from) && near.has(to)) };
}

function Named({ task }: { readonly task: Task }) {
  const ids = (task.dependsOn ?? []).slice(0, NODES_MAX);
  const found = useTasks(ids);
  const nodes: GraphNode[] = [
    ...ids.map((id, index) => {
      const each = found[index];
      return each === undefined
        ? // None of them has been read, or this one is no longer kept.
          { id, title: shortId(id), note: found.length === 0 ? "" : "not known", state: undefined }
        : { id, title: titleOf(each), note: each.agentId, state: each.state };
    }),
    { id: task.taskId, title: titleOf(task), note: "this task", state: task.state },
  ];
  if (ids.length === 0) return null;
  return <Section task={task} nodes={nodes} edges={ids.map((id) => ({ from: id, to: task.taskId }))} />;
}

interface SectionProps {
  readonly task: Task;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

function Section({ task, nodes, edges }: SectionProps) {
  return (
    <section className="cell rule" id="graph" aria-labelledby="graph-head">
      <div className="cell-head">
        <h2 id="graph-head">Dependencies</h2>
        {task.batchId !== undefined && (
          <Link className="more" href={`/batches/${task.batchId}`}>
            Batch {shortId(task.batchId)}
          </Link>
        )}
      </div>
      <Graph nodes={nodes} edges={edges} own={task.taskId} />
    </section>
  );
}

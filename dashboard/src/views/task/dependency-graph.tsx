import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useRouter } from "wouter";
import type { Batch, Task } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { shortId } from "../../parts/format.ts";
import { stateWord } from "../../parts/state.tsx";
import { titleOf } from "../../parts/task-text.ts";
import { type GraphEdge, type GraphNode, layOut, NODE } from "./graph-layout.ts";

/** A larger graph is not readable. */
const NODES_MAX = 60;
const TITLE_MAX = 17;

/** The tasks that a task depends on, and those that depend on it: from its batch, else from its own fields. */
export default function DependencyGraph({ task }: { readonly task: Task }) {
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
  return <Graph task={task} {...graph} />;
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
  const { client } = useSession();
  const ids = (task.dependsOn ?? []).slice(0, NODES_MAX);
  const found = useQueries({
    queries: ids.map((id) => ({
      queryKey: ["task", id],
      queryFn: ({ signal }: { signal: AbortSignal }) => client.tasks.get(id, { signal }),
      meta: { live: (event: { readonly taskId: string }) => event.taskId === id },
    })),
  });
  const nodes: GraphNode[] = [
    ...ids.map((id, index) => {
      const each = found[index]?.data;
      return each === undefined
        ? { id, title: shortId(id), note: "not known", state: "queued" as const }
        : { id, title: titleOf(each), note: each.agentId, state: each.state };
    }),
    { id: task.taskId, title: titleOf(task), note: "this task", state: task.state },
  ];
  if (ids.length === 0) return null;
  return <Graph task={task} nodes={nodes} edges={ids.map((id) => ({ from: id, to: task.taskId }))} />;
}

interface GraphProps {
  readonly task: Task;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

function Graph({ task, nodes, edges }: GraphProps) {
  const { base } = useRouter();
  const layout = useMemo(() => layOut(nodes, edges), [nodes, edges]);
  const done = new Set(nodes.filter(({ state }) => state === "done").map(({ id }) => id));
  const words = nodes.map(({ title, state }) => `${title}, ${stateWord(state)}`).join("; ");
  return (
    <section className="cell rule" id="graph" aria-labelledby="graph-head">
      <div className="cell-head">
        <h2 id="graph-head">Dependencies</h2>
        {task.batchId !== undefined && (
          <Link className="more" href={`/tasks?batchId=${task.batchId}`}>
            Batch {shortId(task.batchId)}
          </Link>
        )}
      </div>
      <div className="dag" tabIndex={0} role="region" aria-label={`Dependency graph: ${words}`}>
        <svg width={layout.width} height={layout.height} aria-hidden="true">
          {layout.edges.map(({ key, from, path }) => (
            <path key={key} className={done.has(from) ? "e" : "e off"} d={path} />
          ))}
          {layout.nodes.map(({ id, title, note, state, x, y }) => (
            <a key={id} href={`${base}/tasks/${id}`} className={id === task.taskId ? "me" : ""} tabIndex={-1}>
              <rect x={x} y={y} width={NODE.width} height={NODE.height} rx={6} />
              <use
                href={`#s-${state}`}
                className={`st st-${state}`}
                x={x + 10}
                y={y + 9}
                width={14}
                height={14}
              />
              <text x={x + 30} y={y + 20}>
                {title.length > TITLE_MAX ? `${title.slice(0, TITLE_MAX - 1)}…` : title}
              </text>
              <text className="s" x={x + 30} y={y + 35}>
                {note}
              </text>
            </a>
          ))}
        </svg>
      </div>
    </section>
  );
}

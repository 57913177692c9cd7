import { useMemo } from "react";
import { useBase } from "../../parts/router.tsx";
import { stateWord } from "../../parts/state.tsx";
import { type GraphEdge, type GraphNode, layOut, NODE } from "./graph-layout.ts";

const TITLE_MAX = 17;

interface GraphProps {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** The task whose page shows the graph. */
  readonly own?: string;
  /** Tasks to emphasize, in the order of their edges. */
  readonly path?: readonly string[];
}

/** Tasks and their dependencies, from left to right. Screen readers get the tasks as a sentence. */
export function Graph({ nodes, edges, own, path = [] }: GraphProps) {
  const base = useBase();
  const layout = useMemo(() => layOut(nodes, edges), [nodes, edges]);
  const done = new Set(nodes.filter(({ state }) => state === "done").map(({ id }) => id));
  const steps = new Set(path.slice(1).map((id, index) => `${path[index]} ${id}`));
  const words = nodes.map(({ title, state }) => `${title}, ${stateWord(state)}`).join("; ");
  return (
    <div className="dag" tabIndex={0} role="region" aria-label={`Dependency graph: ${words}`}>
      <svg width={layout.width} height={layout.height} aria-hidden="true">
        {layout.edges.map(({ key, from, path: d }) => (
          <path
            key={key}
            className={`e ${done.has(from) ? "" : "off"} ${steps.has(key) ? "critical" : ""}`}
            d={d}
          />
        ))}
        {layout.nodes.map(({ id, title, note, state, x, y }) => (
          <a
            key={id}
            href={`${base}/tasks/${id}`}
            className={id === own ? "me" : path.includes(id) ? "critical" : ""}
            tabIndex={-1}
          >
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
  );
}

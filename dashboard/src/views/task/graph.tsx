import { useMemo } from "react";
import { Link } from "../../parts/router.tsx";
import { stateWord } from "../../parts/state.tsx";
import { type GraphEdge, type GraphNode, layOut, NODE } from "./graph-layout.ts";

const TITLE_MAX = 17;
/** Its letters are smaller. */
const NOTE_MAX = 19;

interface GraphProps {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** The task whose page shows the graph. */
  readonly own?: string;
  /** Tasks to emphasize, in the order of their edges. */
  readonly path?: readonly string[];
}

/** Tasks and their dependencies, from left to right, with links to all of them. */
export function Graph({ nodes, edges, own, path = [] }: GraphProps) {
  const layout = useMemo(() => layOut(nodes, edges), [nodes, edges]);
  const done = new Set(nodes.filter(({ state }) => state === "done").map(({ id }) => id));
  const steps = new Set(path.slice(1).map((id, index) => `${path[index]} ${id}`));
  return (
    <div className="dag" tabIndex={0} role="region" aria-label="Dependency graph">
      <svg width={layout.width} height={layout.height}>
        {layout.edges.map(({ key, from, path: d }) => (
          <path
            key={key}
            className={`e ${done.has(from) ? "" : "off"} ${steps.has(key) ? "critical" : ""}`}
            d={d}
          />
        ))}
        {layout.nodes.map(({ id, title, note, state, x, y }) => (
          <Link
            key={id}
            href={`/tasks/${id}`}
            className={id === own ? "me" : path.includes(id) ? "critical" : ""}
            aria-current={id === own ? "page" : undefined}
          >
            <rect x={x} y={y} width={NODE.width} height={NODE.height} rx={6} />
            {state !== undefined && (
              // biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it is a picture, and no control.
              <use
                role="img"
                aria-label={stateWord(state)}
                href={`#s-${state}`}
                className={`st st-${state}`}
                x={x + 10}
                y={y + 9}
                width={14}
                height={14}
              />
            )}
            {/* What is cut too late, because its letters are wide, ends with the box. */}
            <svg role="none" x={x + 30} y={y} width={NODE.width - 36} height={NODE.height}>
              <text y={20}>{cut(title, TITLE_MAX)}</text>
              <text className="s" y={35}>
                {cut(note, NOTE_MAX)}
              </text>
            </svg>
          </Link>
        ))}
      </svg>
    </div>
  );
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

import { DEFAULT_AGENT } from "../../model/agent.ts";
import type { Scope } from "../../model/scope.ts";
import type { TaskKind } from "../../model/task.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import type { InsertedTask, NewTask, Storage } from "../../storage/storage.ts";

/** How many known names are compared to suggest the one that was meant. */
const NAMES_MAX = 1_000;
/** Warnings in one response, and names in a warning. */
const WARNINGS_MAX = 10;

export interface WarnParams {
  readonly scope: Scope;
  readonly storage: Storage;
  /** How long a task waits for an executor before it fails. */
  readonly noExecutorMs: () => number;
}

/** What the caller should know of tasks that were accepted although no live node can execute them. */
export async function submitWarnings(
  { scope: { tenant, agent: own }, storage, noExecutorMs }: WarnParams,
  tasks: readonly Pick<NewTask, "agent" | "spec">[],
  inserted: readonly InsertedTask[],
): Promise<{ warnings?: readonly string[] }> {
  const unserved = tasks.filter((_, index) => inserted[index]?.unserved);
  if (unserved.length === 0) return {};
  const named = new Map(unserved.map(({ agent, spec }) => [`${spec.work.kind} ${agent}`, { agent, spec }]));
  // A caller that sees one agent does not learn the names of others.
  const names = own === undefined ? await storage.agents.knownNames({ tenant, limit: NAMES_MAX }) : [];
  const known = [...new Set([DEFAULT_AGENT, ...names])];
  const seconds = Math.round(noExecutorMs() / 1_000);
  const first = [...named.values()].slice(0, WARNINGS_MAX);
  return { warnings: first.map(({ agent, spec }) => warning(agent, spec.work.kind, known, seconds)) };
}

function warning(agent: string, kind: TaskKind, known: readonly string[], seconds: number): string {
  const others = known.filter((name) => name !== agent);
  const isWhole = known.length <= NAMES_MAX;
  const nearest = isWhole ? nearestName(agent, others) : undefined;
  const more = others.length > WARNINGS_MAX ? " and more" : "";
  const names =
    others.length === 0 ? "" : `; known agents: ${others.slice(0, WARNINGS_MAX).join(", ")}${more}`;
  const hint = nearest === undefined ? names : `; did you mean "${nearest}"?`;
  return (
    `agent "${agent}" has no executor and no live node has \`executors.${kind}\`: ` +
    `the task fails after ${seconds} s in the queue unless a node or a worker that runs it starts${hint}`
  );
}

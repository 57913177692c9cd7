import { type AgentName, agentKey, DEFAULT_AGENT } from "../../../model/agent.ts";
import { TASK_KINDS, type TaskKind } from "../../../model/task.ts";
import { isTerminal } from "../../../model/task-state.ts";
import { aloneKindOf, heldKind, isAloneKind } from "../../alone-line.ts";
import { noExecutorError } from "../../no-executor-error.ts";
import { type Abilities, AGENT_MEMORY_MS, type TaskPlace } from "../../storage.ts";
import {
  addLine,
  failTask,
  isOfLine,
  type OracleLine,
  type OracleState,
  type OracleTask,
  tell,
} from "../state.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";

/** Identifies an agent queue. */
export type LineName = Pick<OracleLine, "lane" | "tenant" | "agent" | "kind">;

/** Whether the agent has an executor of its own: on a live node, on a node that is away, or stored with the agent. */
export function isServed(state: OracleState, agent: AgentName): boolean {
  return isStoredWithExecutor(state, agent) || namings(state, agent.agent).includes(true);
}

export function isKnown(state: OracleState, agent: AgentName): boolean {
  return state.catalogue.has(agentKey(agent)) || namings(state, agent.agent).length > 0;
}

export function knownNames(
  state: OracleState,
  { tenant, limit }: { tenant: string; limit: number },
): string[] {
  const stored = [...state.catalogue.values()].filter((record) => record.tenant === tenant);
  const named = liveNodes(state).flatMap(({ abilities }) => [...(abilities?.agents.keys() ?? [])]);
  const names = new Set([...stored.map(({ agent }) => agent), ...named, ...state.agentsSeen.keys()]);
  return [...names].sort().slice(0, limit);
}

/** Whether a node with these abilities can execute the tasks of an agent queue. */
export function canExecute(state: OracleState, abilities: Abilities | null, line: LineName): boolean {
  if (abilities === null || canOpen(state, abilities, line)) return true;
  if (isServed(state, line)) return abilities.agents.get(line.agent) ?? false;
  // If an agent is not served, its agent queue for all kinds only holds kinds that every node can execute.
  const kind = heldKind(line.kind ?? "");
  return kind === "" || abilities.kinds.includes(kind);
}

/** The live nodes that can execute the tasks of an agent queue. */
export function ableNodes(state: OracleState, line: LineName): string[] {
  const nodes = liveNodes(state).filter(({ abilities }) => canExecute(state, abilities, line));
  return nodes.map(({ node }) => node);
}

export function liveNodes(state: OracleState) {
  return [...state.nodes.values()].filter(({ dead }) => !dead);
}

/**
 * The only kind of tasks that an agent queue holds; null: it holds all. An agent that is not served has an agent queue of its own
 * for each kind that not every live node can execute, so that such tasks do not block others.
 */
function lineKindOf(state: OracleState, task: AgentName & Pick<OracleTask, "spec">): TaskKind | null {
  const { kind } = task.spec.work;
  return task.agent === DEFAULT_AGENT || state.commonKinds.has(kind) || isServed(state, task) ? null : kind;
}

/** The agent queue of a new task. Creates it for the first one. */
export function lineFor(
  state: OracleState,
  task: Omit<LineName, "kind"> & Pick<OracleTask, "spec">,
): OracleLine {
  return ensureLine(state, { ...task, kind: lineKindOf(state, task) });
}

/** Moves a task to another agent queue, if its kind was common to all nodes, or its agent served, and no longer is. */
export function findLineAnew(state: OracleState, task: OracleTask): void {
  if (task.lineKind === null) task.lineKind = lineFor(state, task).kind;
}

/** Moves a task to an agent queue whose tasks run alone. */
export function moveToAlone(state: OracleState, task: OracleTask): void {
  task.lineKind = ensureLine(state, { ...task, kind: aloneKindOf(task.agent, task.spec.work.kind) }).kind;
}

/** Every task refers to its agent queue, a rejected one too. So the queue is as old as the first of them. */
function ensureLine(state: OracleState, name: LineName): OracleLine {
  const known = state.lines.find(
    (line) => line.lane === name.lane && line.kind === name.kind && agentKey(line) === agentKey(name),
  );
  return known ?? addLine(state, name, standingOf(state, name));
}

export function standingOf(state: OracleState, line: LineName): OracleLine["standing"] {
  if (liveNodes(state).length === 0 || ableNodes(state, line).length > 0)
    return isAloneKind(line.kind) ? "alone" : "executable";
  return isServed(state, line) ? "away" : "unserved";
}

/** Updates agent queues after a node has joined, left or changed, or a stored agent has changed. */
export function abilitiesChanged(state: OracleState): void {
  const nodes = liveNodes(state);
  if (nodes.length === 0) return;
  const common = TASK_KINDS.filter((kind) =>
    nodes.every(({ abilities }) => abilities?.kinds.includes(kind) ?? true),
  );
  state.commonKinds = new Set(common);
  for (const task of state.tasks) if (!isTerminal(task.state)) findLineAnew(state, task);
  for (const line of state.lines) {
    const standing = standingOf(state, line);
    if (standing !== line.standing && standing === "executable") state.lanesToRecheck.add(line.lane);
    line.standing = standing;
  }
  for (const task of state.tasks) if (!isUnserved(state, task)) task.unservedAt = null;
  preempt(state);
  tell(state, { kind: "work" });
}

/** Remembers the agents that a node named, for when it is gone. */
export function rememberAgents(state: OracleState, abilities: Abilities | null): void {
  const at = state.clock.now();
  for (const [agent, serves] of abilities?.agents ?? []) {
    state.agentsSeen.set(agent, { serves: serves || (state.agentsSeen.get(agent)?.serves ?? false), at });
  }
}

/** A node that names an agent but has no executor for it needs none: nodes that are gone then no longer count as serving it. */
export function endMemory(state: OracleState, abilities: Abilities | null): void {
  for (const [agent, serves] of abilities?.agents ?? []) {
    const seen = state.agentsSeen.get(agent);
    if (!serves && seen !== undefined) state.agentsSeen.set(agent, { ...seen, serves: false });
  }
}

/** Forgets agents that no node has named for `AGENT_MEMORY_MS`. */
export function forgetAgents(state: OracleState): void {
  const before = state.clock.now() - AGENT_MEMORY_MS;
  const old = [...state.agentsSeen].filter(([, { at }]) => at <= before);
  for (const [agent] of old) state.agentsSeen.delete(agent);
  if (old.length > 0) abilitiesChanged(state);
}

/** Whether it will fail unless a node with an executor for its kind joins. */
export function isUnserved(state: OracleState, task: OracleTask): boolean {
  return state.lines.some((line) => line.standing === "unserved" && isOfLine(task, line));
}

export function failUnserved(
  state: OracleState,
  { afterMs, limit }: { afterMs: number; limit: number },
): { failed: TaskPlace[]; nextAt: number | null } {
  const now = state.clock.now();
  const unserved = state.tasks.filter((task) => task.state === "queued" && isUnserved(state, task));
  const unmarked = unserved.filter(({ unservedAt }) => unservedAt === null);
  for (const task of unmarked.slice(0, limit)) task.unservedAt = now;
  const due = marked(unserved).filter(({ unservedAt }) => (unservedAt ?? now) + afterMs <= now);
  const failing = due.slice(0, limit);
  for (const task of failing) failTask(state, task, noExecutorError(task.agent, task.spec.work.kind));
  settleMoves(state);
  preempt(state);
  if (failing.length > 0) tell(state, { kind: "events" });
  const more = unmarked.length > limit || due.length > limit;
  const [next] = marked(unserved.filter((task) => task.state === "queued"));
  const nextAt = next?.unservedAt == null ? null : next.unservedAt + afterMs;
  return {
    failed: failing.map(({ tenant, agent, lane }) => ({ tenant, agent, lane })),
    nextAt: more ? now : nextAt,
  };
}

/** Tasks that are known to be unserved, the longest first. */
function marked(tasks: readonly OracleTask[]): OracleTask[] {
  return tasks
    .filter(({ unservedAt }) => unservedAt !== null)
    .sort((a, b) => (a.unservedAt ?? 0) - (b.unservedAt ?? 0) || a.seq - b.seq);
}

/** Whether an agent is stored with an executor that a node with these abilities can unseal. */
function canOpen(state: OracleState, { keys = [] }: Abilities, agent: AgentName): boolean {
  const key = state.catalogue.get(agentKey(agent))?.definition["sealedWith"];
  return isStoredWithExecutor(state, agent) && (key === undefined || keys.includes(key as string));
}

function isStoredWithExecutor(state: OracleState, agent: AgentName): boolean {
  return state.catalogue.get(agentKey(agent))?.definition["executor"] !== undefined;
}

/** For each live node that names an agent, and for those that are gone: whether it serves the agent. */
function namings(state: OracleState, agent: string): boolean[] {
  const live = liveNodes(state).flatMap(({ abilities }) => abilities?.agents.get(agent) ?? []);
  const seen = state.agentsSeen.get(agent);
  return seen === undefined ? live : [...live, seen.serves];
}

import { isDeepStrictEqual } from "node:util";
import { DEFAULT_AGENT } from "../../../src/model/agent.ts";
import type { Task } from "../../../src/model/task.ts";
import type { Call, History } from "../history.ts";

/** Ends of an attempt that its node learns afterwards: until then its call goes on, though it changes nothing. */
const ENDED_FROM_OUTSIDE = ["cancelled", "preempted", "interrupted"];

/**
 * What the agents' program saw agrees with what was granted: an attempt calls once, on the node it was granted to, and
 * the result of a task is what the attempt that holds it was answered.
 *
 * Two calls of a task may overlap, but only so: the older attempt was taken back before the newer one was granted, and
 * its node could not yet know or was struck by a fault. A node that sleeps or is cut off cannot be made to hang up.
 *
 * A start is not on the disk when it is made: a crash of the database may forget it, and the task starts once more with the
 * same number. What the forgotten one was answered changes nothing.
 */
export function calls(history: History): string[] {
  const called = Map.groupBy(history.calls, (call) => call.taskId);
  const findings: string[] = [];
  for (const taskId of called.keys())
    if (!history.tasks.has(taskId)) findings.push(`${taskId} was called for, and is not there`);
  for (const task of history.tasks.values()) {
    const all = called.get(task.taskId) ?? [];
    const list = all.filter((call) => !isForgotten(call, task, all, history));
    const said = [...granted(task, list), ...apart(task, list, history), ...answered(task, list, history)];
    findings.push(...said.map((finding) => `${task.taskId}: ${finding}`));
  }
  return findings;
}

/** Whether a crash of the database explains that this call is of no attempt, and another stands in its place. */
function isForgotten(
  call: Call,
  task: Task,
  all: readonly Call[],
  { crashes = [] }: Pick<History, "crashes">,
): boolean {
  const isReplaced =
    task.attempts[call.attempt - 1]?.node !== call.node ||
    all.some(({ attempt, began }) => attempt === call.attempt && began > call.began);
  return (
    isReplaced &&
    crashes.some(
      ({ from, until }) =>
        (until === null || call.began < until) && (call.ended === null || call.ended > from),
    )
  );
}

function granted(task: Task, list: readonly Call[]): string[] {
  const findings: string[] = [];
  const seen = new Set<number>();
  for (const { attempt, node } of list) {
    if (seen.has(attempt)) findings.push(`attempt ${attempt} called twice`);
    seen.add(attempt);
    const grantedTo = task.attempts[attempt - 1]?.node;
    if (grantedTo === undefined) findings.push(`attempt ${attempt} called and was never granted`);
    else if (grantedTo !== node)
      findings.push(`attempt ${attempt} was granted to ${grantedTo} and called from ${node}`);
  }
  return findings;
}

function apart(task: Task, list: readonly Call[], history: History): string[] {
  return overlaps(list)
    .filter(([older, newer]) => !mayLinger(older, newer, task, history))
    .map(
      ([older, newer]) => `attempt ${newer.attempt} called while attempt ${older.attempt} was still at it`,
    );
}

/**
 * The default agent answers by itself, and makes no calls. A message that a running task took has no attempt, and is done only
 * with that task, which is of the same session.
 */
function answered(task: Task, list: readonly Call[], { tasks }: History): string[] {
  if (task.state !== "done" || task.agentId === DEFAULT_AGENT) return [];
  if (task.attempts.length === 0) {
    const { steeredInto = "" } = (task.result ?? {}) as { steeredInto?: string };
    const taker = tasks.get(steeredInto);
    if (taker?.state === "done" && taker.sessionKey === task.sessionKey) return [];
  }
  const last = list.filter(({ attempt }) => attempt === task.attempts.length);
  const isWell =
    last.length > 0 && last.every(({ answer }) => isDeepStrictEqual(answer?.result, task.result));
  return isWell ? [] : ["its result is not what its last attempt was answered"];
}

/** Pairs of calls of one task, by different attempts, that went on at the same time. */
function overlaps(list: readonly Call[]): [older: Call, newer: Call][] {
  const inOrder = list.toSorted((a, b) => a.attempt - b.attempt);
  const pairs: [Call, Call][] = [];
  for (const [index, older] of inOrder.entries())
    for (const newer of inOrder.slice(index + 1))
      if (newer.attempt !== older.attempt && (older.ended === null || newer.began < older.ended))
        pairs.push([older, newer]);
  return pairs;
}

function mayLinger(older: Call, newer: Call, task: Task, { strikes }: History): boolean {
  const attempt = task.attempts[older.attempt - 1];
  if (attempt === undefined || attempt.outcome === null) return false;
  if (ENDED_FROM_OUTSIDE.includes(attempt.outcome)) return true;
  if (attempt.outcome === "lost")
    return strikes.some(
      ({ process, from, until }) =>
        process === older.process && from < newer.began && (until === null || older.began < until),
    );
  // Its own node gave it up: then it hangs up first, but the program may notice that a little later.
  return attempt.outcome === "failed" && /^timed out|^deadline/.test(attempt.error ?? "");
}

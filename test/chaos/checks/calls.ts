import { isDeepStrictEqual } from "node:util";
import type { Task } from "../../../src/model/task.ts";
import type { Call, History } from "../history.ts";

/** Ends of an attempt that its node hears of afterwards: until then its call goes on, though it changes nothing. */
const ENDED_FROM_OUTSIDE = ["cancelled", "preempted", "interrupted"];

/**
 * What the agents' program saw agrees with what was granted: an attempt calls once, on the node it was granted to, and
 * the result of a task is what the attempt that holds it was answered.
 *
 * Two calls of a task may overlap, but only so: the older attempt was taken back before the newer one was granted, and
 * its node could not yet know or was struck by a fault. A node that sleeps or is cut off cannot be made to hang up.
 */
export function calls(history: History): string[] {
  const findings: string[] = [];
  for (const [taskId, list] of byTask(history.calls)) {
    const task = history.tasks.get(taskId);
    const say = (said: string) => findings.push(`${taskId}: ${said}`);
    if (task === undefined) {
      say("the agents' program was handed it, and it is not there");
      continue;
    }
    const seen = new Set<number>();
    for (const call of list) {
      if (seen.has(call.attempt)) say(`attempt ${call.attempt} called twice`);
      seen.add(call.attempt);
      const granted = task.attempts[call.attempt - 1];
      if (granted === undefined) say(`attempt ${call.attempt} called and was never granted`);
      else if (granted.node !== call.node)
        say(`attempt ${call.attempt} was granted to ${granted.node} and called from ${call.node}`);
    }
    for (const [older, newer] of overlaps(list))
      if (!mayLinger(older, newer, task, history))
        say(`attempt ${newer.attempt} called while attempt ${older.attempt} was still at it`);
    if (task.state === "done" && !isAnswered(task, list))
      say("its result is not what its last attempt was answered");
  }
  return findings;
}

/** Pairs of calls of one task, by different attempts, that went on at the same time. */
export function overlaps(list: readonly Call[]): [older: Call, newer: Call][] {
  const inOrder = list.toSorted((a, b) => a.attempt - b.attempt);
  const pairs: [Call, Call][] = [];
  for (const [index, older] of inOrder.entries())
    for (const newer of inOrder.slice(index + 1))
      if (newer.attempt !== older.attempt && (older.ended === null || newer.began < older.ended))
        pairs.push([older, newer]);
  return pairs;
}

export function byTask(list: readonly Call[]): Map<string, Call[]> {
  return Map.groupBy(list, ({ taskId }) => taskId);
}

function mayLinger(older: Call, newer: Call, task: Task, { strikes }: History): boolean {
  const attempt = task.attempts[older.attempt - 1];
  if (attempt === undefined || attempt.outcome === null) return false;
  if (ENDED_FROM_OUTSIDE.includes(attempt.outcome)) return true;
  if (attempt.outcome === "lost")
    return strikes.some(({ process, at }) => process === older.process && at < newer.began);
  // Its own node gave it up: then it hangs up first, but the program may hear of that a moment later.
  return attempt.outcome === "failed" && /^timed out|^deadline/.test(attempt.error ?? "");
}

function isAnswered(task: Task, list: readonly Call[]): boolean {
  const answers = list.filter(({ attempt }) => attempt === task.attempts.length);
  return (
    answers.length === 1 && answers.every(({ answer }) => isDeepStrictEqual(answer?.result, task.result))
  );
}

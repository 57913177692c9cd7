import { isDeepStrictEqual } from "node:util";
import type { AttemptOutcome, Task } from "../../../src/model/task.ts";
import type { Finish, History } from "../history.ts";

/** The outcome of an attempt whose end a worker reported. */
const OUTCOMES: Readonly<Record<Finish["outcome"], readonly AttemptOutcome[]>> = {
  done: ["done"],
  failed: ["failed"],
  released: ["interrupted", "lost"],
};

/**
 * Each end that a worker reported and Rota acknowledged is counted, once: it is the end that the attempt has, however often the
 * worker repeated it.
 */
export function finishes({ finishes: reported = [], tasks }: History): string[] {
  const byAttempt = Map.groupBy(reported, ({ taskId, attempt }) => `${taskId} ${attempt}`);
  return [...byAttempt.values()].flatMap((list) => {
    const recorded = list.filter((finish) => finish.recorded);
    const [first] = recorded;
    if (first === undefined) return [];
    const said = ofAttempt(recorded, tasks.get(first.taskId));
    return said.map((finding) => `${first.taskId}: attempt ${first.attempt} ${finding}`);
  });
}

function ofAttempt(recorded: readonly Finish[], task: Task | undefined): string[] {
  const [first] = recorded;
  if (first === undefined) return [];
  if (task === undefined) return ["was recorded, and the task is not there"];
  const findings: string[] = [];
  const counted = recorded.filter(({ repeated }) => !repeated).length;
  if (counted > 1) findings.push(`was recorded ${counted} times`);
  const shown = task.attempts[first.attempt - 1]?.outcome ?? null;
  if (shown === null || !OUTCOMES[first.outcome].includes(shown))
    findings.push(`was recorded as ${first.outcome}, and shows ${shown}`);
  const isLast = first.attempt === task.attempts.length;
  if (first.outcome === "done" && isLast && !isDeepStrictEqual(task.result, first.result))
    findings.push("was recorded with another result than the task shows");
  return findings;
}

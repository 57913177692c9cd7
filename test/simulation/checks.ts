import { check, type Finding } from "../chaos/checks/index.ts";
import type { History } from "../chaos/history.ts";
import type { World } from "./world.ts";

/** What a process may say as an error when everything around it fails. */
const EXPECTED = new Set([
  "lost its lease and aborted what it ran",
  "could not write down what ended; another start will run it again",
  "could not store the limits of agents",
]);

/** What chaos looks for, and what can be seen only where everything can be. */
export function checkAll(history: History, world: World): Finding[] {
  return [...check(history), ...startedAfterAll(history), ...complaints(world)];
}

/** An attempt that was handed back because nobody had started it was not started by anybody. */
function startedAfterAll({ calls, tasks }: History): Finding[] {
  const promise = "what was not started is not running";
  const wrong = calls.filter(({ taskId, attempt }) =>
    tasks.get(taskId)?.attempts[attempt - 1]?.error?.startsWith("not started"),
  );
  return wrong.map(({ taskId, attempt }) => ({ promise, said: `${taskId}: attempt ${attempt} was called` }));
}

/** What was found wrong on the way, and what a process said that it never should. */
function complaints({ all, complained }: World): Finding[] {
  const promise = "nothing fails but what was made to";
  const said = all.flatMap(({ name, log }) =>
    log.lines
      .filter(({ level, message }) => level === "error" && !EXPECTED.has(message))
      .map(({ message, fields }) => `${name}: ${message} ${String(fields["error"] ?? "")}`),
  );
  return [...complained, ...said].map((each) => ({ promise, said: each }));
}

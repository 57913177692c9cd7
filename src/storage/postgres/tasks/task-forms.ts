import { jsonText } from "../../../model/text/json-text.ts";
import type { NewTask } from "../../storage.ts";

/**
 * Most tasks of a call differ from others in nothing but their id and what is to be done. All else is their form, which the
 * database looks at once: as JSON, each form once, and of each task the number of its form, from 1. `places`: which of its
 * agent's tasks in this call it is, from 1.
 */
export function sortByForm(tasks: readonly NewTask[]): {
  forms: string[];
  formOf: number[];
  places: number[];
} {
  const forms = new Map<string, number>();
  const agents = new Map<string, number>();
  const formOf: number[] = [];
  const places: number[] = [];
  for (const task of tasks) {
    const text = JSON.stringify(toForm(task));
    const form = forms.get(text) ?? forms.size + 1;
    if (form > forms.size) forms.set(text, form);
    formOf.push(form);
    // No name has this character.
    const agent = `${task.tenant}\0${task.agent}`;
    const place = (agents.get(agent) ?? 0) + 1;
    agents.set(agent, place);
    places.push(place);
  }
  return { forms: [...forms.keys()], formOf, places };
}

/** What is null is left out: there is much of it. */
function toForm(task: NewTask): object {
  const { session, origin, dependsOn } = task;
  return {
    tenant: task.tenant,
    agent: task.agent,
    lane: task.lane,
    kind: task.spec.work.kind,
    priority: task.priority,
    run_at: task.runAt ?? undefined,
    deadline: task.deadline ?? undefined,
    deadline_after_ms: task.deadlineAfterMs ?? undefined,
    max_retries_if_lost: task.maxRetriesIfLost,
    max_queued: task.maxQueued ?? undefined,
    preemptible: task.preemptible,
    batch: task.batch ?? undefined,
    session: session?.key,
    session_max: session?.maxConcurrent,
    origin: origin === "task" ? undefined : origin,
    schedule: task.schedule ?? undefined,
    concurrency_key: task.concurrencyKey ?? undefined,
    callback_url: task.callbackUrl ?? undefined,
    depends_on: dependsOn.length === 0 ? undefined : dependsOn,
  };
}

/**
 * As text: the database neither looks into it nor refuses the characters that its own JSON refuses. One for each line: JSON
 * has none inside, so nothing needs to be quoted.
 */
export function specsOf(tasks: readonly NewTask[]): string {
  return tasks.map(({ spec }) => jsonText(spec)).join("\n");
}

export function integers(values: readonly number[]): string {
  return `{${values.join(",")}}`;
}

/** A new task by itself, as JSON has it: its form and all that is its own. */
export function toTaskRow(task: NewTask): object {
  const { id, idempotency, spec } = task;
  return { ...toForm(task), id, key: idempotency?.key, hash: idempotency?.hash, spec: jsonText(spec) };
}

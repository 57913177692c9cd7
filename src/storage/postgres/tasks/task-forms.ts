import { agentKey } from "../../../model/agent.ts";
import { jsonText } from "../../../model/text/json-text.ts";
import type { NewTask } from "../../storage.ts";

/**
 * Most tasks of a call differ in nothing but their id and their spec. All else is their form, which the database reads once.
 * `forms`: each form once, as JSON. `formOf`: the number of the form of each task, from 1. `positions`: the position of each task
 * among those of its agent in this call, from 1.
 */
export function sortByForm(tasks: readonly NewTask[]): {
  forms: string[];
  formOf: number[];
  positions: number[];
} {
  const forms = new Map<string, number>();
  const agents = new Map<string, number>();
  const formOf: number[] = [];
  const positions: number[] = [];
  for (const task of tasks) {
    const text = JSON.stringify(toForm(task));
    const form = forms.get(text) ?? forms.size + 1;
    if (form > forms.size) forms.set(text, form);
    formOf.push(form);
    const agent = agentKey(task);
    const position = (agents.get(agent) ?? 0) + 1;
    agents.set(agent, position);
    positions.push(position);
  }
  return { forms: [...forms.keys()], formOf, positions };
}

/** Nulls are left out: there are many. */
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
    parent_task: task.spec.within?.taskId,
    root_task: task.spec.within?.rootTaskId,
    depends_on: dependsOn.length === 0 ? undefined : dependsOn,
  };
}

/**
 * As text: the database does not parse it, because its JSON parser refuses some characters. They are sent one per line: JSON text
 * has no line breaks, so nothing needs to be quoted.
 */
export function specsOf(tasks: readonly NewTask[]): string[] {
  return tasks.map(({ spec }) => jsonText(spec) as string);
}

export function integers(values: readonly number[]): string {
  return `{${values.join(",")}}`;
}

/** One new task as JSON: its form and what only this task has. */
export function toTaskRow(task: NewTask): object {
  const { id, idempotency, spec } = task;
  return { ...toForm(task), id, key: idempotency?.key, hash: idempotency?.hash, spec: jsonText(spec) };
}

import { isDeepStrictEqual } from "node:util";
import { isObject } from "../model/field-checks.ts";
import { inputOfTask } from "../model/input-of-task.ts";
import type { Redactor } from "../model/redactor.ts";
import type { SubmitInput } from "../model/submit-input.ts";
import { DEFAULT_AGENT } from "../model/task.ts";
import { type TaskRecord, toExecutorTask } from "../model/task-record.ts";

const FREE_FORM = ["params", "llmConfig", "payload", "metadata"] as const;
/** Where the params of an action go. */
const TARGET = ["action", "tabId", "ref", "selector"] as const;

/**
 * What is submitted again: the task as it was stored, or what was given. A field of it that has masks is taken from the stored
 * task if it is as that is shown, and the agent is the same, for `params` also the target. Otherwise the masks stay, and are refused: a caller who cannot
 * read a secret must not send it to another agent, or to another URL beside it.
 */
export function inputAgain(
  record: TaskRecord,
  given: SubmitInput | null | undefined,
  { redactor, now }: { readonly redactor: Redactor; readonly now: number },
): SubmitInput {
  const stored = inputOfTask(toExecutorTask(record), now);
  if (given === undefined || given === null) return stored;
  if (!isObject(given) || (given.agentId ?? DEFAULT_AGENT) !== record.agent) return given;
  const isSameTarget = TARGET.every(
    (field) => (given[field as keyof SubmitInput] ?? undefined) === stored[field as keyof SubmitInput],
  );
  const fields = FREE_FORM.filter((field) => {
    if (field === "params" && !isSameTarget) return false;
    const value = given[field as keyof SubmitInput];
    const shown = redactor.field(field, stored[field as keyof SubmitInput]);
    return redactor.findMask(field, value) !== undefined && isDeepStrictEqual(value, shown);
  });
  const copied = fields.map((field) => [field, stored[field as keyof SubmitInput]]);
  return { ...given, ...Object.fromEntries(copied) };
}

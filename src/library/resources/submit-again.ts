import { isDeepStrictEqual } from "node:util";
import { DEFAULT_AGENT } from "../../model/agent.ts";
import { isObject } from "../../model/input/field-checks.ts";
import { inputOfTask } from "../../model/input/input-of-task.ts";
import type { SubmitInput } from "../../model/input/submit-input.ts";
import type { Redactor } from "../../model/redactor.ts";
import { type TaskRecord, toExecutorTask } from "../../model/task-record.ts";

const FREE_FORM = ["params", "llmConfig", "payload", "metadata"] as const;
/** The fields that define the target of an action. */
const TARGET = ["action", "tabId", "ref", "selector"] as const;

/**
 * The input of a task that is submitted again: the stored task, or the given input. A field with masks is taken from the stored
 * task if the rest of the field and the agent are unchanged, for `params` also the target. Otherwise the masks stay and are
 * refused: a caller who cannot read a secret must not be able to send it to another agent or URL.
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

import type { Redactor } from "../redactor.ts";
import type { TaskWork } from "../task.ts";
import { invalidField } from "./field-checks.ts";

/** The free-form fields of a task or schedule. */
interface FreeForm {
  readonly work?: TaskWork | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined;
}

/** The free-form fields of a task or schedule, by name. */
function freeFormFields({ work, metadata }: FreeForm): (readonly [field: string, value: unknown])[] {
  return [...(work === undefined ? [] : fieldsOf(work)), ["metadata", metadata ?? undefined] as const].filter(
    ([, value]) => value !== undefined,
  );
}

function fieldsOf(work: TaskWork): (readonly [field: string, value: unknown])[] {
  switch (work.kind) {
    case "action":
      return [["params", work.params]];
    case "instruction":
      return [["llmConfig", work.llmConfig]];
    case "message":
      return [];
    case "custom":
      return [["payload", work.payload]];
  }
}

/** Refuses input that contains a mask: the mask would be stored as the secret. Throws `invalid_field`. */
export function refuseMasks(input: FreeForm, redactor: Redactor): void {
  for (const [field, value] of freeFormFields(input)) {
    const path = redactor.findMask(field, value);
    if (path !== undefined) throw invalidField(path, `\`${path}\` is masked: write the value`);
  }
}

/** The secrets in the input of a task that are strings. */
export function secretsOf(input: FreeForm, redactor: Redactor): string[] {
  return freeFormFields(input).flatMap(([field, value]) => redactor.secretsIn(field, value));
}

import { invalidField } from "./field-checks.ts";
import type { Redactor } from "./redactor.ts";
import type { TaskWork } from "./task.ts";

/** What of a task or schedule a user fills in freely. */
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

/** Refuses what was read with a mask and is sent back: the mask would be taken for the secret. Throws `invalid_field`. */
export function refuseMasks(input: FreeForm, redactor: Redactor): void {
  for (const [field, value] of freeFormFields(input)) {
    const place = redactor.findMask(field, value);
    if (place !== undefined) throw invalidField(place, `\`${place}\` is masked: write the value`);
  }
}

/** The secrets that a task was given, as far as they are texts. */
export function secretsOf(input: FreeForm, redactor: Redactor): string[] {
  return freeFormFields(input).flatMap(([field, value]) => redactor.secretsIn(field, value));
}

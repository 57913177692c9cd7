import { RotaError } from "../model/errors.ts";
import { quoted } from "../model/input/field-checks.ts";
import { ACCEPTED_FORMS } from "./accepted-forms.ts";

/** The error for a schedule that Rota does not understand. */
export function notUnderstood(schedule: unknown, fault: string, field: string): RotaError {
  return refused(`\`${field}\` ${quoted(schedule)} was not understood: ${fault}`, field);
}

/** The error for a missing schedule. */
export function missingSchedule(field: string): RotaError {
  return refused(`\`${field}\` is missing: it ${MUST_BE}`, field);
}

/** What a schedule must be, as the end of a sentence. */
export const MUST_BE = "must be a phrase, or an object with the kind at, every or cron";

/** The error for a schedule that Rota understands but cannot execute. */
export function impossibleSchedule(schedule: unknown, fault: string, field: string): RotaError {
  return refused(`\`${field}\` ${quoted(schedule)} is not possible: ${fault}`, field);
}

/** The details of the error list the accepted forms. */
function refused(sentence: string, field: string): RotaError {
  const accepted = ACCEPTED_FORMS.map(({ form }) => form);
  return new RotaError("invalid_field", sentence, { details: { field, accepted } });
}

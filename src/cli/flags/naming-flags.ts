import { RotaError } from "../../model/errors.ts";
import type { Fault } from "../../model/input/schema.ts";

/**
 * Adds the flags to a server error that names fields: to each fault if there are several. `flags` contains those whose names
 * differ from their fields.
 */
export function namingFlags(error: unknown, flags: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof RotaError) || error.details === undefined) return error;
  const { field, faults } = error.details as { readonly field?: string; readonly faults?: readonly Fault[] };
  const named = (faults ?? [{ field: String(field), message: error.message }]).filter(
    (fault) => fault.field in flags,
  );
  if (named.length === 0) return error;
  const message = named.reduce(
    (text, fault) => text.replace(fault.message, () => `${fault.message} (${flags[fault.field]})`),
    error.message,
  );
  return new RotaError(error.code, message, { details: { ...error.details }, cause: error });
}

import { RotaError } from "../../model/errors.ts";

/** Adds the flag to a server error that names a field. `flags` contains those whose names differ from their fields. */
export function namingFlags(error: unknown, flags: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof RotaError)) return error;
  const flag = flags[String(error.details?.["field"])];
  if (flag === undefined) return error;
  const options = error.details === undefined ? {} : { details: { ...error.details } };
  return new RotaError(error.code, `${error.message} (${flag})`, { ...options, cause: error });
}

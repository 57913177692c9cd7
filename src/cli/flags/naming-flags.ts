import { RotaError } from "../../model/errors.ts";

/** The server names fields; whoever typed flags is told which flag that is. `flags` has those of another name. */
export function namingFlags(error: unknown, flags: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof RotaError)) return error;
  const flag = flags[String(error.details?.["field"])];
  if (flag === undefined) return error;
  const options = error.details === undefined ? {} : { details: { ...error.details } };
  return new RotaError(error.code, `${error.message} (${flag})`, { ...options, cause: error });
}

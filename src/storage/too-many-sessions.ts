import { RotaError } from "../model/errors.ts";

/** A tenant has as many sessions with settings as it may. Waiting does not help, so it is no 429. */
export function tooManySessions(max: number): RotaError {
  const sessions = max === 1 ? "1 session" : `${max} sessions`;
  return new RotaError("conflict", `the tenant may have ${sessions} with settings: delete one first`, {
    details: { maxSessions: max },
  });
}

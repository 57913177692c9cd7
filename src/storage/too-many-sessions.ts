import { RotaError } from "../model/errors.ts";

/** The tenant has reached its limit of sessions with settings. A 409, not a 429: waiting does not help. */
export function tooManySessions(max: number): RotaError {
  const sessions = max === 1 ? "1 session" : `${max} sessions`;
  return new RotaError("conflict", `the tenant may have ${sessions} with settings: delete one first`, {
    details: { maxSessions: max },
  });
}

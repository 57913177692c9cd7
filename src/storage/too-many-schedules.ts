import { RotaError } from "../model/errors.ts";

/** The tenant has reached its limit of active and paused schedules. A 409, not a 429: waiting does not help. */
export function tooManySchedules(max: number): RotaError {
  const schedules = max === 1 ? "1 schedule that is" : `${max} schedules that are`;
  return new RotaError("conflict", `the tenant may have ${schedules} not over: delete one first`, {
    details: { maxSchedules: max },
  });
}

import { RotaError } from "../model/errors.ts";

/** The tenant has reached its limit of active and paused schedules. A 409, not a 429: waiting does not help. */
export function tooManySchedules(max: number): RotaError {
  const schedules = max === 1 ? "1 active or paused schedule" : `${max} active or paused schedules`;
  return new RotaError("conflict", `the tenant may have ${schedules}: delete one first`, {
    details: { maxSchedules: max },
  });
}

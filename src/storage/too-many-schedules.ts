import { RotaError } from "../model/errors.ts";

/** A tenant has as many schedules that are active or paused as it may. Waiting does not help, so it is no 429. */
export function tooManySchedules(max: number): RotaError {
  const schedules = max === 1 ? "1 schedule that is" : `${max} schedules that are`;
  return new RotaError("conflict", `the tenant may have ${schedules} not over: delete one first`, {
    details: { maxSchedules: max },
  });
}

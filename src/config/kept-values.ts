import { isObject } from "../model/field-checks.ts";

/**
 * The section `scheduler` without the numbers that are 0: when the configuration is read again while Rota runs, those
 * keep the value they have.
 */
export function withoutZeros(scheduler: unknown): unknown {
  if (!isObject(scheduler)) return scheduler;
  return Object.fromEntries(Object.entries(scheduler).filter(([, value]) => value !== 0));
}

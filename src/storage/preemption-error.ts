/** Why an attempt was taken from a task that runs again later. */
export function preemptionError(by: string): string {
  return `made way for the critical task ${by}`;
}

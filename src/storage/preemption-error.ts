/** The error of an attempt that was pre-empted; its task runs again later. */
export function preemptionError(by: string): string {
  return `made way for the critical task ${by}`;
}

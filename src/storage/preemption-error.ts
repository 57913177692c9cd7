/** The error of an attempt that was pre-empted; its task runs again later. */
export function preemptionError(by: string): string {
  return `pre-empted by the critical task ${by}`;
}

/** A time as schedules, runs and notifications show it: whole seconds since 1970, 0 for never. */
export function toSeconds(moment: number | null): number {
  return moment === null ? 0 : Math.floor(moment / 1_000);
}

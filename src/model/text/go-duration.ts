/** Seconds as Go writes durations: `5m0s`, `720h0m0s`, `45s`. */
export function goDuration(seconds: number): string {
  const hours = Math.floor(seconds / 3_600);
  const minutes = Math.floor((seconds % 3_600) / 60);
  const rest = `${seconds % 60}s`;
  if (hours > 0) return `${hours}h${minutes}m${rest}`;
  return minutes > 0 ? `${minutes}m${rest}` : rest;
}

/** Reads such a text; null: it is not a duration. */
export function goDurationSeconds(text: string): number | null {
  const [, hours = "0", minutes = "0", seconds] = /^(?:(\d+)h)?(?:(\d+)m)?(\d+(?:\.\d+)?)s$/.exec(text) ?? [];
  return seconds === undefined ? null : Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds);
}

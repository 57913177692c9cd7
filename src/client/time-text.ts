/** A time as it is written in a query. */
export function timeText<Time extends number | string>(
  time: Time | Date | undefined,
): Time | string | undefined {
  return time instanceof Date ? time.toJSON() : time;
}

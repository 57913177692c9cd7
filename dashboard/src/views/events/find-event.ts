import type { EventPage, EventPageFilter } from "../../../../src/client/index.ts";

/** Halving finds an event among two to the power of this. */
const STEPS_MAX = 53;

/**
 * The first number after the last event up to a time: the list before it begins at that time. The log can be read by number
 * only. Numbers and times grow together, so halving finds it. Undefined: no event is later.
 */
export async function firstAfter(
  atMs: number,
  read: (filter: EventPageFilter) => Promise<EventPage>,
): Promise<number | undefined> {
  const isLate = ({ timestamp }: { readonly timestamp: string }) => Date.parse(timestamp) > atMs;
  const [newest] = (await read({ limit: 1 })).events;
  if (newest === undefined || !isLate(newest)) return undefined;
  // Events up to `low` are not late, events after `high` are.
  let [low, high] = [0, newest.seq - 1];
  for (let step = 0; step < STEPS_MAX && low < high; step += 1) {
    const middle = Math.floor((low + high) / 2);
    const [next] = (await read({ after: middle, limit: 1 })).events;
    if (next === undefined || isLate(next)) high = middle;
    else low = next.seq;
  }
  return high + 1;
}

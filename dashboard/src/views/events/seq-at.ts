/** Of the log of events: the first one after a number, or the last one before one. */
export type ReadOne = (query: {
  readonly after?: number;
  readonly before?: number;
}) => Promise<{ readonly seq: number; readonly timestamp: string } | undefined>;

/**
 * The number of the first event after a time. Undefined: there is none. The log is searched by halves: about 20 requests for a
 * million events, each for one event.
 */
export async function seqAt(time: number, readOne: ReadOne): Promise<number | undefined> {
  const [first, last] = [await readOne({ after: 0 }), await readOne({})];
  if (first === undefined || last === undefined || Date.parse(last.timestamp) <= time) return undefined;
  let [low, high] = [first.seq, last.seq];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const found = await readOne({ after: middle - 1 });
    if (found !== undefined && Date.parse(found.timestamp) <= time) low = found.seq + 1;
    else high = middle;
  }
  return low;
}

/** What a request uses, as far as it is known. */
export interface RequestUsage {
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Rows read or written: tasks of a page or of a batch, and the like. */
  readonly rows: number;
  /** Rows read, including those that do not match. */
  readonly looked: number;
  /** Due times of a schedule that are computed. */
  readonly dueTimes: number;
}

/**
 * How much of each makes one unit of cost. A unit is about half a millisecond of the event loop, or up to five for bodies: one of
 * 1 MiB with a hundred thousand small fields takes 100 to 300 ms to read and check.
 */
const PER_UNIT: RequestUsage = { bytesIn: 16_384, bytesOut: 65_536, rows: 50, looked: 500, dueTimes: 20 };

/** From this much work on, bytes aside, a request counts as expensive: few of one key run at once. */
const EXPENSIVE_UNITS = 10;

/**
 * The cost of a request in units of `server.rateLimit`. A request that reads or writes little costs 1, so that limits given
 * in requests keep their meaning.
 *
 * @example
 * costOf({ bytesIn: 80, bytesOut: 27_000, dueTimes: 1_000 }); // 50
 */
export function costOf(usage: Partial<RequestUsage>): number {
  return Math.max(1, Math.floor(unitsOf(usage)));
}

/** The same for a part of the work of a request, which may cost next to nothing. */
export function unitsOf(usage: Partial<RequestUsage>): number {
  const { bytesIn = 0, bytesOut = 0, rows = 0, looked = 0, dueTimes = 0 } = usage;
  return (
    bytesIn / PER_UNIT.bytesIn +
    bytesOut / PER_UNIT.bytesOut +
    rows / PER_UNIT.rows +
    looked / PER_UNIT.looked +
    dueTimes / PER_UNIT.dueTimes
  );
}

/** Bytes do not count: the body has been read already, and unread responses are bounded elsewhere. */
export function isExpensive({ rows, dueTimes }: RequestUsage): boolean {
  return rows / PER_UNIT.rows + dueTimes / PER_UNIT.dueTimes >= EXPENSIVE_UNITS;
}

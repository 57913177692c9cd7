import { setTimeout as delay } from "node:timers/promises";
import { type Called, isAccepted } from "./http-caller.ts";

/** How long a connection waits after a refusal: four that are only refused still make eighty requests a second. */
const AFTER_REFUSAL_MS = 50;

/** The outcomes of requests; of a batch, each task counts. */
export interface FloodCount {
  accepted: number;
  refused: number;
  /** Neither: the node was gone, or gave no response. */
  unanswered: number;
}

export function noRequests(): FloodCount {
  return { accepted: 0, refused: 0, unanswered: 0 };
}

/** Of one request. */
export function countOf(called: Called): FloodCount {
  if (isAccepted(called)) return { ...noRequests(), accepted: 1 };
  return called.status === 0 ? { ...noRequests(), unanswered: 1 } : { ...noRequests(), refused: 1 };
}

/** Of a batch, whose tasks are each accepted or refused. */
export function countOfBatch(called: Called, size: number): FloodCount {
  if (called.status === 0) return { ...noRequests(), unanswered: size };
  if (!isAccepted(called)) return { ...noRequests(), refused: size };
  const { submitted } = JSON.parse(called.body) as { submitted: number };
  return { ...noRequests(), accepted: submitted, refused: size - submitted };
}

export interface FloodParams {
  /** Everything is added to it. */
  readonly counted: FloodCount;
  /** Loops, each of which waits for its response before it sends the next request. */
  readonly connections: number;
  /** Requests a second of all of them at most; left out: as many as the node responds to. */
  readonly perSecond?: number;
  /** Ends once this returns false: the time is over, or enough was sent. */
  readonly goesOn: () => boolean;
  /** `n` counts from 0 over all connections. */
  readonly request: (n: number) => Promise<FloodCount>;
}

/** Requests in loops. */
export async function flood({
  counted,
  connections,
  perSecond,
  goesOn,
  request,
}: FloodParams): Promise<void> {
  let sent = 0;
  let nextAt = performance.now();
  const loop = async () => {
    while (goesOn()) {
      if (perSecond !== undefined) {
        const at = Math.max(nextAt, performance.now());
        nextAt = at + 1_000 / perSecond;
        await delay(Math.max(0, at - performance.now()));
      }
      const { accepted, refused, unanswered } = await request(sent++);
      counted.accepted += accepted;
      counted.refused += refused;
      counted.unanswered += unanswered;
      if (refused + unanswered > 0) await delay(AFTER_REFUSAL_MS);
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
}

import type { Clock } from "../model/clock.ts";

export interface WithinParams<Value, Late> {
  readonly clock: Clock;
  readonly ms: number;
  readonly work: Promise<Value>;
  /** What to return, or throw, when the work takes longer. */
  readonly onLate: () => Late;
}

/** Waits for work, but for `ms` at most. The work itself goes on after that, and a later failure of it is ignored. */
export async function within<Value, Late>(params: WithinParams<Value, Late>): Promise<Value | Late> {
  const { clock, ms, work, onLate } = params;
  const late = Promise.withResolvers<void>();
  const timer = clock.setTimer(ms, late.resolve);
  try {
    return await Promise.race([work, late.promise.then(onLate)]);
  } finally {
    timer.cancel();
  }
}

import type { BegunAttempt, FinishAndClaimParams, FinishedAttempt } from "./storage.ts";

/** What begins and ends together; see `BegunAttempt.wave`. */
export interface Wave {
  readonly number: number;
  readonly begun: readonly BegunAttempt[];
  readonly finishes: readonly FinishedAttempt[];
}

/** The waves of an exchange, in order. If an attempt begins or ends several times, the first counts. */
export function wavesOf({ begun = [], finishes }: Pick<FinishAndClaimParams, "begun" | "finishes">): Wave[] {
  const starts = firstOfEach(begun);
  const ends = firstOfEach(finishes);
  if (starts.length === 0) return [{ number: 0, begun: starts, finishes: ends }];
  const waveOf = new Map(starts.map(({ token, wave = 0 }) => [token, wave]));
  const numbers = [...new Set([0, ...waveOf.values()])].sort((a, b) => a - b);
  return numbers.map((number) => ({
    number,
    begun: starts.filter(({ wave = 0 }) => wave === number),
    finishes: ends.filter(({ token }) => (waveOf.get(token) ?? 0) === number),
  }));
}

/** If an attempt is named several times, the first counts. */
export function firstOfEach<T extends { readonly token: number }>(attempts: readonly T[]): readonly T[] {
  const tokens = new Set(attempts.map(({ token }) => token));
  if (tokens.size === attempts.length) return attempts;
  return attempts.filter(({ token }) => tokens.delete(token));
}

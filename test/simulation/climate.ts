import type { Chance } from "../chaos/chance.ts";

/** What may be done to a node, or to all of them. */
export const MISHAPS = [
  "crash",
  "pause",
  "stall",
  "cut",
  "ail",
  "doubt",
  "leave",
  "jump",
  "outage",
  "reset",
  "strike",
] as const;
export type Mishap = (typeof MISHAPS)[number];

/** More kinds of them in one world would only get in each other's way. */
const KINDS_MAX = 5;

/**
 * How bad a world is. Not everything is bad in each: what only goes wrong while something else goes well would otherwise
 * never be seen.
 */
export interface Climate {
  readonly nodes: number;
  /** Once in so many times; null: never. */
  readonly calls: {
    /** Takes a good while, or seconds. */
    readonly slow: number | null;
    /** Does not happen, and fails. */
    readonly refused: number | null;
    /** Happens, and its answer is lost. */
    readonly unanswered: number | null;
    /** Happens after its caller got an error. */
    readonly late: number | null;
  };
  /** Whether the storage is far away: every call takes a while, and short tasks are claimed ahead. */
  readonly isFar: boolean;
  readonly signals: { readonly lost: number | null; readonly doubled: number | null };
  /** How far the clocks of nodes are off at most. */
  readonly skewMs: number;
  readonly mishaps: readonly Mishap[];
  /** The longest pause between two of them. */
  readonly mishapEveryMs: number;
  /** The longest pause of a client between two requests. */
  readonly requestEveryMs: number;
  /** Once in so many calls an agent does something else than its work. */
  readonly agentsFail: number | null;
  /** Once in so many callbacks the receiver does something else than accept it. */
  readonly receiverFails: number | null;
  /** How many of a lane run at once over all nodes; null: as many as all of them can. */
  readonly lanesTotal: number | null;
}

export function chooseClimate(chance: Chance): Climate {
  const perhaps = (...choices: number[]) => (chance.oneIn(2) ? null : chance.pick(choices));
  return {
    nodes: chance.between(1, 3),
    calls: {
      slow: perhaps(10, 50),
      refused: perhaps(8, 16, 60),
      unanswered: perhaps(8, 16, 60),
      late: chance.oneIn(4) ? chance.pick([12, 60]) : null,
    },
    signals: { lost: perhaps(1, 2, 10), doubled: perhaps(2, 10) },
    skewMs: chance.pick([0, 0, 400, 900]),
    mishaps: chance.shuffle(MISHAPS).slice(0, chance.between(0, KINDS_MAX)),
    mishapEveryMs: chance.pick([2_000, 5_000, 12_000]),
    requestEveryMs: chance.pick([1_500, 3_000, 5_000]),
    agentsFail: perhaps(2, 5, 20),
    receiverFails: perhaps(2, 5, 20),
    lanesTotal: chance.pick([null, 2, 4]),
    isFar: chance.oneIn(2),
  };
}

/** The same world, once all goes well. Only signals may be lost for good: nothing must depend on them. */
export function fairWeather(climate: Climate): Climate {
  return {
    ...climate,
    calls: { slow: null, refused: null, unanswered: null, late: null },
    skewMs: 0,
    mishaps: [],
    agentsFail: null,
    receiverFails: null,
  };
}

/** Whether it happens this time. */
export function happens(chance: Chance, once: number | null): boolean {
  return once !== null && chance.oneIn(once);
}

import { type Figure, figure, type Goal, isMet, percentile } from "../figure.ts";
import type { FloodCount } from "./flood.ts";
import type { VictimReport } from "./victim-watch.ts";

/** What was measured in one scene: without an attack, or under one. */
export interface Scene {
  /** `quiet`, or the attack. */
  readonly name: string;
  readonly victim: VictimReport;
  /** Null: there was no attack. */
  readonly attacker: FloodCount | null;
  readonly deaths: number;
  /** Null where the system does not say. */
  readonly peakRssMib: number | null;
}

export type Column =
  | "submit p50"
  | "submit p99"
  | "list p50"
  | "list p99"
  | "start p99"
  | "schedule late"
  | "callback p99"
  | "refused"
  | "memory"
  | "deaths";

/** The values of a scene; what could not be measured is left out. */
export type Values = Partial<Record<Column, number>>;

export function valuesOf({ victim, deaths, peakRssMib }: Scene): Values {
  const all: Record<Column, number> = {
    "submit p50": percentile(victim.submitMs, 50),
    "submit p99": percentile(victim.submitMs, 99),
    "list p50": percentile(victim.listMs, 50),
    "list p99": percentile(victim.listMs, 99),
    "start p99": percentile(victim.startMs, 99),
    // So few in a window that the worst is the only one to look at.
    "schedule late": percentile(victim.scheduleMs, 100),
    "callback p99": percentile(victim.callbackMs, 99),
    refused: victim.refused,
    memory: peakRssMib ?? Number.NaN,
    deaths,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => !Number.isNaN(value)));
}

/** An attack may make it so many times as slow. */
const TIMES_MAX = 3;
/** Beyond that it is too slow whatever it was when quiet. */
const REQUEST_MS_MAX = 250;
const SCHEDULE_MS_MAX = 500;
const MEMORY_MIB_MAX = 1_024;
/**
 * Where quiet takes a millisecond, three are no harm and any other program on the machine is enough for them: up to here
 * the ratio does not count.
 */
const REQUEST_FLOOR_MS = 25;
const DELIVERY_FLOOR_MS = 100;

/** What an attack is held to, by what it was when quiet; null: it is only shown. */
export function goalOf(column: Column, quiet: Values): Goal | null {
  const slower = (floorMs: number) => Math.max(TIMES_MAX * (quiet[column] ?? 0), floorMs);
  switch (column) {
    case "submit p50":
    case "list p50":
      return null;
    case "submit p99":
    case "list p99":
      return { below: Math.min(slower(REQUEST_FLOOR_MS), REQUEST_MS_MAX) };
    case "start p99":
    case "callback p99":
      return { below: slower(DELIVERY_FLOOR_MS) };
    case "schedule late":
      return { below: SCHEDULE_MS_MAX };
    case "memory":
      return { below: MEMORY_MIB_MAX };
    case "refused":
    case "deaths":
      return { below: 1 };
  }
}

/**
 * What attacks are compared with: of each figure the best that was measured without one. What else the machine did
 * meanwhile must not loosen the goals.
 */
export function quietValues(scenes: readonly Scene[]): Values {
  const quiet: Values = {};
  for (const scene of scenes) {
    if (scene.attacker !== null) continue;
    for (const [name, value] of Object.entries(valuesOf(scene))) {
      const column = name as Column;
      quiet[column] = Math.min(quiet[column] ?? value, value);
    }
  }
  return quiet;
}

/** The figures of a scene, each with its goal. Quiet scenes have none. */
export function figuresOf(scene: Scene, quiet: Values): { column: Column; figure: Figure }[] {
  return Object.entries(valuesOf(scene)).map(([name, value]) => {
    const column = name as Column;
    const goal = scene.attacker === null ? null : goalOf(column, quiet);
    return { column, figure: figure(`${scene.name}: ${column}`, unitOf(column), [value], goal) };
  });
}

/** The columns whose goal an attack misses; so is one that has nothing to measure any more. */
export function missedBy(scene: Scene, quiet: Values): Column[] {
  return scene.attacker === null ? [] : missedColumns(scene, quiet);
}

/** The columns of quiet scenes that miss what attacks are held to: the machine is too busy for the figures to mean much. */
export function noisyColumns(scenes: readonly Scene[]): Column[] {
  const quiet = quietValues(scenes);
  const missed = scenes
    .filter(({ attacker }) => attacker === null)
    .flatMap((scene) => missedColumns(scene, quiet));
  return [...new Set(missed)];
}

function missedColumns(scene: Scene, quiet: Values): Column[] {
  const values = valuesOf(scene);
  return (Object.keys(quiet) as Column[]).filter((column) => {
    const value = values[column];
    const goal = goalOf(column, quiet);
    if (value === undefined) return true;
    return isMet(figure(column, unitOf(column), [value], goal)) === false;
  });
}

function unitOf(column: Column): Figure["unit"] {
  if (column === "memory") return "MiB";
  return column === "refused" || column === "deaths" ? "count" : "ms";
}

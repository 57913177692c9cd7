import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Setting } from "./job.ts";
import { createDatabase } from "./postgres/database.ts";

/** An empty storage. */
export interface Place {
  /** The options of `createRota`. */
  readonly url: string;
  /** Writes back what earlier work left dirty, so that the next measurement does not pay for it. */
  settle(): Promise<void>;
  remove(): Promise<void>;
}

export type NewPlace = () => Promise<Place>;

export function sqlitePlaces({ folder }: Pick<Setting, "folder">): NewPlace {
  return async () => {
    const own = await mkdtemp(join(folder, "sqlite-"));
    return {
      url: `sqlite:${join(own, "rota.db")}`,
      settle: async () => {},
      remove: () => rm(own, { recursive: true, force: true }),
    };
  };
}

export const memoryPlace: NewPlace = async () => ({
  url: "sqlite::memory:",
  settle: async () => {},
  remove: async () => {},
});

export function postgresPlaces({ postgresUrl }: Pick<Setting, "postgresUrl">): NewPlace {
  if (postgresUrl === null) throw new Error("there is no PostgreSQL to measure");
  return () => createDatabase(postgresUrl);
}

/** Hands an empty storage to `measure` and removes it afterwards, even if `measure` fails. */
export async function inPlace<Result>(
  newPlace: NewPlace,
  measure: (place: Place) => Promise<Result>,
): Promise<Result> {
  const place = await newPlace();
  try {
    return await measure(place);
  } finally {
    await place.remove();
  }
}

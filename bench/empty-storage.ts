import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Setting } from "./job.ts";
import { createDatabase } from "./postgres/database.ts";

/** An empty storage. */
export interface EmptyStorage {
  /** The options of `createRota`. */
  readonly url: string;
  /** Writes back what earlier work left dirty, so that the next measurement does not pay for it. */
  settle(): Promise<void>;
  remove(): Promise<void>;
}

export type NewStorage = () => Promise<EmptyStorage>;

export function sqliteStorage({ folder }: Pick<Setting, "folder">): NewStorage {
  return async () => {
    const own = await mkdtemp(join(folder, "sqlite-"));
    return {
      url: `sqlite:${join(own, "rota.db")}`,
      settle: async () => {},
      remove: () => rm(own, { recursive: true, force: true }),
    };
  };
}

export const memoryStorage: NewStorage = async () => ({
  url: "sqlite::memory:",
  settle: async () => {},
  remove: async () => {},
});

export function postgresStorage({ postgresUrl }: Pick<Setting, "postgresUrl">): NewStorage {
  if (postgresUrl === null) throw new Error("there is no PostgreSQL to measure");
  return () => createDatabase(postgresUrl);
}

/** Hands an empty storage to `measure` and removes it afterwards, even if `measure` fails. */
export async function withStorage<Result>(
  newStorage: NewStorage,
  measure: (target: EmptyStorage) => Promise<Result>,
): Promise<Result> {
  const target = await newStorage();
  try {
    return await measure(target);
  } finally {
    await target.remove();
  }
}

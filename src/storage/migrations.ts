import { readdirSync, readFileSync } from "node:fs";
import { RotaError } from "../model/errors.ts";

/** One step of a schema, from a file named `001-what-it-adds.sql`. Steps only add, and are never changed. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** Reads the numbered files of a driver's `migrations/` folder. */
export function readMigrations(folder: URL): Migration[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .sort();
  return names.map((name, index) => {
    const version = Number.parseInt(name, 10);
    if (version !== index + 1) throw new Error(`migration ${name} should have the number ${index + 1}`);
    return { version, name, sql: readFileSync(new URL(name, folder), "utf8") };
  });
}

/** A program must not write into a schema that it does not know. */
export function newerSchemaError(found: number, known: number): RotaError {
  return new RotaError(
    "storage_unavailable",
    `the database has schema version ${found}, this Rota knows up to ${known}: start a newer Rota on it`,
  );
}

import type { z } from "zod";
import { RotaError } from "../model/errors.ts";

/** A file of another kind can have thousands of faults, and `/health` shows them as well. */
const FAULTS_SHOWN_MAX = 50;

/** A fault of a configuration: where it is, and a sentence with what to write instead. */
export interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Returns `given` with all defaults, or everything that is wrong with it. */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  given: unknown,
): { ok: true; value: z.output<Schema> } | { ok: false; faults: Fault[] } {
  const parsed = schema.safeParse(given);
  if (parsed.success) return { ok: true, value: parsed.data };
  const faults = parsed.error.issues.flatMap(({ path, message }) =>
    message.split("\n").map((sentence) => ({ path, message: sentence })),
  );
  return { ok: false, faults };
}

/** One error with all faults, or the first `FAULTS_SHOWN_MAX` of them. */
export function faultsError(all: readonly string[]): RotaError {
  const [first = ""] = all;
  const more = all.length - FAULTS_SHOWN_MAX;
  const faults = more > 0 ? [...all.slice(0, FAULTS_SHOWN_MAX), `and ${more} more`] : all;
  const message =
    all.length === 1
      ? `the configuration has a fault: ${first}`
      : `the configuration has ${all.length} faults:\n${faults.map((fault) => `- ${fault}`).join("\n")}`;
  return new RotaError("invalid_field", message, { details: { faults } });
}

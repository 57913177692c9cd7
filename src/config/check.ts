import type { z } from "zod";
import { RotaError } from "../model/errors.ts";

/** A fault of a configuration: where it is, and a sentence with what to write instead. */
export interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** What `given` says, with every default filled in, or everything that is wrong with it. */
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

/** One error for all faults. */
export function faultsError(faults: readonly string[]): RotaError {
  const [first = ""] = faults;
  const message =
    faults.length === 1
      ? `the configuration has a fault: ${first}`
      : `the configuration has ${faults.length} faults:\n${faults.map((fault) => `- ${fault}`).join("\n")}`;
  return new RotaError("invalid_field", message, { details: { faults } });
}

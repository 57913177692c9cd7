import { z } from "zod";
import { dotted, must } from "./option-kinds.ts";

/** Rota searches every text that it shows for each name. */
const NAMES_MAX = 100;
const NAME = /^[^\p{Cc}]{1,128}$/u;

/** Names of fields of tasks whose values are secret, in all tenants. */
export const redact = z
  .preprocess(
    // A variable is easier to write without brackets and quotes.
    (value) => (typeof value === "string" ? value.split(",").map((name) => name.trim()) : value),
    z
      .array(z.string({ error: nameFault }).regex(NAME, { error: nameFault }), {
        error: must('be an array of names, like ["password", "token"]'),
      })
      .max(NAMES_MAX, { error: must(`name at most ${NAMES_MAX}`) }),
  )
  .default([])
  .describe(
    "Names of fields whose values are shown as `…`, at any depth of `params`, `payload`, `metadata`, `llmConfig` and results, and in errors. Upper and lower case do not matter.",
  );

function nameFault({ path }: { readonly path?: PropertyKey[] | undefined }): string {
  return `\`${dotted(path)}\` must be the name of a field, of 1 to 128 characters on one line`;
}

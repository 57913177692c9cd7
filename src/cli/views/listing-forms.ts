import { RotaError } from "../../model/errors.ts";
import { oneLine } from "../terminal/display-text.ts";

/** Adds the accepted forms to the error about a phrase that was not understood; one that is not possible has a right form. */
export function listingForms(error: unknown): unknown {
  if (!(error instanceof RotaError) || error.message.includes(" is not possible: ")) return error;
  const accepted = error.details?.["accepted"];
  if (!Array.isArray(accepted)) return error;
  const forms = accepted.map((form) => `  ${oneLine(String(form))}`);
  return new RotaError(error.code, [error.message, "Accepted forms:", ...forms].join("\n"), {
    cause: error,
  });
}

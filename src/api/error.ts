import { z } from "zod";
import { ERROR_STATUS, type ErrorCode } from "../model/errors.ts";

const CODES = Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]];

/** What every request that fails is answered with. */
export const errorAnswer = z.strictObject({
  code: z.enum(CODES).describe("What went wrong, for programs; docs/errors.md explains each."),
  error: z.string().describe("What went wrong and what to do instead, for people."),
  retryable: z.literal(true).exactOptional().describe("There when the same request may work later."),
  details: z.record(z.string(), z.unknown()).exactOptional(),
});

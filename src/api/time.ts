import { z } from "zod";

/** A time in requests and responses. */
export const time = z.iso.datetime({ offset: true }).describe("RFC 3339, with a zone.");

/** A time of a schedule or a run in requests and responses. */
export const seconds = z.int().describe("Seconds since 1970; 0: never.");

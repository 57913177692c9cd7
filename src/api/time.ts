import { z } from "zod";

/** A moment on the wire. */
export const time = z.iso.datetime({ offset: true }).describe("RFC 3339, with a zone.");

/** A moment of a schedule or a run on the wire. */
export const seconds = z.int().describe("Seconds since 1970; 0: never.");

import { z } from "zod";

/** A moment on the wire. */
export const time = z.iso.datetime({ offset: true }).describe("RFC 3339, with a zone.");

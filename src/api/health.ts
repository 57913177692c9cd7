import { z } from "zod";

export const health = z.strictObject({
  status: z.literal("ok"),
  version: z.string(),
  state: z.enum(["created", "running", "draining", "drained", "stopped"]),
  storage: z.enum(["ok", "unavailable"]),
});

export const ready = z.strictObject({ status: z.literal("ready") });

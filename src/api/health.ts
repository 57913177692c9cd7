import { z } from "zod";

export const health = z.strictObject({
  status: z.literal("ok"),
  version: z.string(),
  state: z.enum(["created", "running", "draining", "drained", "stopped"]),
  storage: z.enum(["ok", "unavailable"]),
  config: z
    .union([
      z.strictObject({ ok: z.literal(true) }),
      z.strictObject({ ok: z.literal(false), error: z.string() }),
    ])
    .describe("Whether the configuration that was read last could be used."),
});

export const ready = z.strictObject({ status: z.literal("ready") });

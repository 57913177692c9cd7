import { z } from "zod";
import { errorAnswers } from "./error.ts";
import { time } from "./time.ts";

export const health = z
  .strictObject({
    status: z.literal("ok"),
    version: z.string(),
    state: z.enum(["created", "running", "draining", "drained", "stopped"]),
    startedAt: time.describe("When this process started."),
    storage: z.enum(["ok", "unavailable"]).describe("Whether the storage accepts durable writes."),
    storageError: z.string().exactOptional().describe("Why the storage is unavailable."),
    scheduler: z
      .literal("disabled")
      .exactOptional()
      .describe("Present if `scheduler.enabled` is false: this process accepts and starts nothing."),
    config: z
      .union([
        z.strictObject({ ok: z.literal(true) }),
        z.strictObject({ ok: z.literal(false), error: z.string() }),
      ])
      .describe("Whether the configuration that was read last is valid."),
  })
  .meta({
    id: "Health",
    description: "The health of the process.",
    examples: [
      {
        status: "ok",
        version: "0.1.0",
        state: "running",
        startedAt: "2026-03-08T12:00:00.000Z",
        storage: "ok",
        config: { ok: true },
      },
    ],
  });

export const ready = z
  .strictObject({ status: z.literal("ready") })
  .meta({ id: "Ready", description: "It takes work.", examples: [{ status: "ready" }] });

export const getHealth = {
  operationId: "getHealth",
  tags: ["node"],
  summary: "Get the health of a node",
  description: "Responds 200 as long as the process lives, whatever else is wrong.",
  response: { 200: health, ...errorAnswers() },
};

export const getReady = {
  operationId: "getReady",
  tags: ["node"],
  summary: "Check whether the node accepts work",
  description: "503 while the process stops, or cannot write to its database.",
  response: { 200: ready, ...errorAnswers("draining", "storage_unavailable") },
};

import { z } from "zod";
import { VIAS } from "../model/provenance.ts";

const keyId = z.string().nullable().describe("The API key; null: none was required.");
const agentId = z
  .string()
  .nullable()
  .describe("The agent on whose behalf it was made; null: a caller that is not bound to one agent.");
const origin = {
  via: z.enum(VIAS).describe("How the request came in."),
  client: z
    .string()
    .exactOptional()
    .describe("The name and version that the client claims to have. Left out: it named none."),
};

/** Who made something. */
export const createdBy = z.strictObject({ keyId, agentId, ...origin }).meta({
  id: "CreatedBy",
  description: "Who made something.",
  examples: [{ keyId: "key_019a8f6e", agentId: null, via: "mcp", client: "claude-code/2.1" }],
});

/** The same for schedules, whose routes speak snake_case. */
export const scheduleMaker = z.strictObject({ key_id: keyId, agent_id: agentId, ...origin }).meta({
  id: "ScheduleMaker",
  description: "Who made a schedule.",
  examples: [{ key_id: "key_019a8f6e", agent_id: "research", via: "writ" }],
});

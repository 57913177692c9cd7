import { z } from "zod";
import { FEATURES } from "../model/me.ts";
import { ROLES } from "../model/role.ts";
import { errorAnswers } from "./error.ts";

export const me = z
  .strictObject({
    role: z.enum(ROLES).describe("What the key allows; `admin` where the server has no keys."),
    keyId: z.string().nullable().describe("Null: the server has no keys, and needs none."),
    keyName: z.string().nullable().describe("The name of the key."),
    tenantId: z.string(),
    tenantName: z.string(),
    agentId: z.string().exactOptional().describe("With the role `agent`: its agent."),
    isLocal: z.boolean().describe("Whether no other machine can reach the server."),
    version: z.string(),
    node: z.string().describe("The responding node."),
    features: z.array(z.enum(FEATURES)).readonly().describe("What the server can do beyond tasks."),
  })
  .meta({
    id: "Me",
    description: "The caller, and the responding node.",
    examples: [
      {
        role: "operator",
        keyId: "key_019a8f6e",
        keyName: "laptop",
        tenantId: "default",
        tenantName: "default",
        isLocal: false,
        version: "0.1.0",
        node: "host-4711-9f86d081884c",
        features: ["sessions", "schedules", "lanes"],
      },
    ],
  });

export const getMe = {
  operationId: "getMe",
  tags: ["node"],
  summary: "Get the role and the tenant of the caller",
  description: "The role and the tenant of the key in the request, and the responding node.",
  response: { 200: me, ...errorAnswers("storage_unavailable") },
};

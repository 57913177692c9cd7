import { z } from "zod";
import { KEY, KEY_OWNER } from "../model/input/key-input.ts";
import { errorAnswersWith } from "./error.ts";
import { presentFields, querySchema, requestSchema } from "./input-schema.ts";
import { time } from "./time.ts";

const keyInput = requestSchema(KEY);

/** A key says what it allows in the same words as the request for it. */
const { role, bounds } = presentFields(KEY.fields);

export const createdKey = z.strictObject({ id: z.string(), key: z.string() }).meta({
  id: "CreatedKey",
  description: "The key. It is shown only in this response.",
  examples: [{ id: "key_019a8f6e", key: "rota_qL0yW6n2s7TqW1b4M9x3Zr8vK5cJ0dHf6uEaGiPkXoY" }],
});

const KEY_EXAMPLE = {
  id: "key_019a8f6e",
  name: "laptop",
  role: "operator" as const,
  tenantId: "default",
  createdAt: "2026-03-08T12:00:01.005Z",
  lastUsedAt: "2026-03-08T12:04:11.120Z",
};

const keyInfo = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    role,
    tenantId: z.string(),
    agentId: z.string().exactOptional().describe("With the role `agent`: its agent."),
    agents: z.array(z.string()).readonly().exactOptional().describe("With the role `worker`: its agents."),
    bounds: bounds.exactOptional(),
    createdAt: time,
    expiresAt: time.exactOptional().describe("Left out: it does not expire."),
    lastUsedAt: time
      .exactOptional()
      .describe(
        "Of uses on other nodes, those of the last half minute may be missing. Left out: it was never used.",
      ),
  })
  .meta({ id: "Key", description: "A key, without its secret.", examples: [KEY_EXAMPLE] });

export const keyList = z.strictObject({ keys: z.array(keyInfo).readonly(), count: z.int() }).meta({
  id: "KeyList",
  description: "The keys of a tenant, the oldest first.",
  examples: [{ keys: [KEY_EXAMPLE], count: 1 }],
});

export const deletedKey = z.strictObject({ deleted: z.literal(true) }).meta({
  id: "DeletedKey",
  description: "The key is refused within a second, on every node.",
  examples: [{ deleted: true }],
});

// ------------------------------------------------------------------------------------------------------ operations

const tags = ["keys"];
const errorAnswers = errorAnswersWith({ not_found: "key not found" });
const params = z.strictObject({ id: z.string().describe("The id of a key.") });
const ownerQuery = querySchema(KEY_OWNER);

export const createKey = {
  operationId: "createKey",
  tags,
  summary: "Create a key",
  description:
    "Only this response shows the key: Rota stores a hash. 404 for an unknown tenant, and for a `tenant-admin` for any tenant but its own. 409 if the tenant has 1000 keys.",
  body: keyInput,
  response: {
    201: createdKey,
    ...errorAnswersWith({
      not_found: "`tenantId`: tenant not found: write the id of an existing tenant",
      conflict: "the tenant has 1000 keys, which is the limit: delete one first",
    })("not_found", "conflict", "storage_unavailable"),
  },
};

export const listKeys = {
  operationId: "listKeys",
  tags,
  summary: "List keys",
  description:
    "The keys of a tenant, oldest first, without the keys themselves. A `tenant-admin` sees the keys of its own tenant, but no `admin` keys.",
  querystring: ownerQuery,
  response: {
    200: keyList,
    ...errorAnswersWith({ not_found: "`tenantId`: tenant not found: write the id of an existing tenant" })(
      "not_found",
      "storage_unavailable",
    ),
  },
};

export const deleteKey = {
  operationId: "deleteKey",
  tags,
  summary: "Delete a key",
  description:
    "Every node refuses the key within a second, and ends the streams that were opened with it. 404 for a key of another tenant, unless `tenantId` names that tenant.",
  params,
  querystring: ownerQuery,
  response: { 200: deletedKey, ...errorAnswers("not_found", "storage_unavailable") },
};

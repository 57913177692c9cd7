import { z } from "zod";
import {
  AGENTS_MAX,
  DEFAULT_MAX_AGENTS,
  DEFAULT_MAX_SCHEDULES,
  DEFAULT_MAX_SESSIONS,
} from "../model/tenant.ts";
import { errorAnswersWith } from "./error.ts";
import { time } from "./time.ts";

const bound = z.int().min(0).nullable();

const limits = {
  maxQueued: bound.describe("Tasks that wait: one more is refused with `queue_full`."),
  maxInflight: bound.describe("Tasks that run, over all lanes and nodes."),
  maxSchedules: bound.describe(
    `Schedules it has that are active or paused. Unless it is given: ${DEFAULT_MAX_SCHEDULES}, and none for the tenant \`default\`.`,
  ),
  maxSessions: bound.describe(
    `Sessions with settings, which stay until they are deleted. Default: ${DEFAULT_MAX_SESSIONS}, and none for the tenant \`default\`.`,
  ),
  maxStreams: bound.describe("Event and notification streams that are open, on each node."),
  maxAgents: z
    .int()
    .min(0)
    .max(AGENTS_MAX)
    .nullable()
    .describe(
      `Agents that it stores. Unless it is given: ${DEFAULT_MAX_AGENTS}, and ${AGENTS_MAX} for the tenant \`default\`.`,
    ),
  maxStoredBytes: bound.describe(
    "What its tasks may take, as `storedBytes` counts it: beyond it tasks and messages are refused with `quota_exceeded`; results are always stored.",
  ),
};

const limitsInput = z.strictObject({
  maxQueued: limits.maxQueued.exactOptional(),
  maxInflight: limits.maxInflight.exactOptional(),
  maxSchedules: limits.maxSchedules.exactOptional(),
  maxSessions: limits.maxSessions.exactOptional(),
  maxStreams: limits.maxStreams.exactOptional(),
  maxAgents: limits.maxAgents.exactOptional(),
  maxStoredBytes: limits.maxStoredBytes.exactOptional(),
});

const tenantInput = z
  .strictObject({ name: z.string(), limits: limitsInput.nullable().exactOptional() })
  .meta({
    id: "NewTenant",
    description: "A tenant is isolated from all others. A limit that is left out, or null, is the default.",
    examples: [{ name: "acme" }, { name: "acme", limits: { maxQueued: 500, maxInflight: 10 } }],
  });

const tenantChanges = z
  .strictObject({ name: z.string().exactOptional(), limits: limitsInput.nullable().exactOptional() })
  .meta({
    id: "TenantChanges",
    description: "What is left out stays; a limit that is null is the default again.",
    examples: [{ name: "Acme Ltd" }, { limits: { maxInflight: null } }],
  });

const TENANT_EXAMPLE = {
  id: "ten_019a8f6e",
  name: "acme",
  disabled: false,
  limits: {
    maxQueued: 500,
    maxInflight: 10,
    maxSchedules: 1_000,
    maxSessions: 10_000,
    maxStreams: null,
    maxAgents: 1_000,
    maxStoredBytes: 1_073_741_824,
  },
  storedBytes: 52_430,
  createdAt: "2026-03-08T12:00:01.005Z",
  updatedAt: "2026-03-08T12:00:01.005Z",
};

export const tenant = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    disabled: z.boolean().describe("Nothing of it starts or fires."),
    limits: z.strictObject(limits).describe("Null: no limit of its own."),
    storedBytes: z
      .int()
      .nullable()
      .describe(
        "What its tasks take: what they were given, their results and errors, and 1024 bytes each. Null: it has no `maxStoredBytes`, and nothing is counted.",
      ),
    createdAt: time,
    updatedAt: time,
  })
  .meta({
    id: "Tenant",
    description: "Whose work it is. The tenant `default` is always there.",
    examples: [TENANT_EXAMPLE],
  });

export const tenantList = z.strictObject({ tenants: z.array(tenant).readonly(), count: z.int() }).meta({
  id: "TenantList",
  description: "The tenants there are.",
  examples: [{ tenants: [TENANT_EXAMPLE], count: 1 }],
});

export const deletedTenant = z.strictObject({ deleted: z.literal(true) }).meta({
  id: "DeletedTenant",
  description: "The tenant is gone, and all that it owned.",
  examples: [{ deleted: true }],
});

export const rotatedWebhookSecret = z
  .strictObject({
    secret: z.string().describe("The new secret, in the form of Standard Webhooks. It is shown only here."),
    previousUntil: time
      .nullable()
      .describe("Until then the previous secret signs as well. Null: there was none."),
  })
  .meta({
    id: "RotatedWebhookSecret",
    description: "The new secret that signs the callbacks of a tenant.",
    examples: [
      {
        secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        previousUntil: "2026-03-09T12:00:01.005Z",
      },
    ],
  });

// ------------------------------------------------------------------------------------------------------ operations

const tags = ["tenants"];
const errorAnswers = errorAnswersWith({
  not_found: "tenant not found",
  conflict: 'there is a tenant called "acme" already',
});
const params = z.strictObject({ id: z.string().describe("The id of a tenant.") });

export const createTenant = {
  operationId: "createTenant",
  tags,
  summary: "Create a tenant",
  description: "Its work is seen by its own keys alone: make one with `POST /v1/keys` and its `tenantId`.",
  body: tenantInput,
  response: { 201: tenant, ...errorAnswers("conflict", "storage_unavailable") },
};

export const listTenants = {
  operationId: "listTenants",
  tags,
  summary: "List tenants",
  description: "All there are, `default` included.",
  response: { 200: tenantList, ...errorAnswers("storage_unavailable") },
};

export const getTenant = {
  operationId: "getTenant",
  tags,
  summary: "Look at a tenant",
  description: "Its name, its limits and whether it is disabled.",
  params,
  response: { 200: tenant, ...errorAnswers("not_found", "storage_unavailable") },
};

export const updateTenant = {
  operationId: "updateTenant",
  tags,
  summary: "Change a tenant",
  description: "Limits hold from now on; what runs beyond them ends by itself.",
  params,
  body: tenantChanges,
  response: { 200: tenant, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};

export const disableTenant = {
  operationId: "disableTenant",
  tags,
  summary: "Disable a tenant",
  description: "Nothing of it starts or fires any more; what runs ends by itself, and what comes in waits.",
  params,
  response: { 200: tenant, ...errorAnswers("not_found", "storage_unavailable") },
};

export const enableTenant = {
  operationId: "enableTenant",
  tags,
  summary: "Enable a tenant",
  description: "What waits starts, and its schedules go on from now.",
  params,
  response: { 200: tenant, ...errorAnswers("not_found", "storage_unavailable") },
};

export const deleteTenant = {
  operationId: "deleteTenant",
  tags,
  summary: "Delete a tenant",
  description: "All that it owns goes with it, its keys first. The tenant `default` stays: 409.",
  params,
  response: { 200: deletedTenant, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};

export const rotateWebhookSecret = {
  operationId: "rotateWebhookSecret",
  tags,
  summary: "Rotate the webhook secret",
  description:
    "The secret signs the tenant's callbacks and the requests of `http` executors, on all nodes within a second. The previous secret signs as well for 24 hours: configure the new one in your receivers within that time. An older secret stops at once.",
  params,
  response: { 200: rotatedWebhookSecret, ...errorAnswers("not_found", "storage_unavailable") },
};

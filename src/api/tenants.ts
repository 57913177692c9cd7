import { z } from "zod";
import { LIMIT_FIELDS, TENANT, TENANT_CHANGES } from "../model/input/tenant-input.ts";
import { errorAnswersWith } from "./error.ts";
import { nullableFields, requestSchema } from "./input-schema.ts";
import { time } from "./time.ts";

const tenantInput = requestSchema(TENANT);

const tenantChanges = requestSchema(TENANT_CHANGES);

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
    disabled: z.boolean().describe("True: none of its tasks start, and none of its schedules fire."),
    limits: z.strictObject(nullableFields(LIMIT_FIELDS)).describe("Null: no limit of its own."),
    storedBytes: z
      .int()
      .nullable()
      .describe(
        "The size of its tasks: inputs, results and errors, and 1024 bytes each. Null: it has no `maxStoredBytes`, and nothing is counted.",
      ),
    createdAt: time,
    updatedAt: time,
  })
  .meta({
    id: "Tenant",
    description: "A customer or team. The tenant `default` always exists.",
    examples: [TENANT_EXAMPLE],
  });

export const tenantList = z.strictObject({ tenants: z.array(tenant).readonly(), count: z.int() }).meta({
  id: "TenantList",
  description: "All tenants.",
  examples: [{ tenants: [TENANT_EXAMPLE], count: 1 }],
});

export const deletedTenant = z.strictObject({ deleted: z.literal(true) }).meta({
  id: "DeletedTenant",
  description: "The tenant is deleted with everything that it owned.",
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
  description: "Only its own keys see its work: create one with `POST /v1/keys` and its `tenantId`.",
  body: tenantInput,
  response: { 201: tenant, ...errorAnswers("conflict", "storage_unavailable") },
};

export const listTenants = {
  operationId: "listTenants",
  tags,
  summary: "List tenants",
  description: "All tenants, `default` included.",
  response: { 200: tenantList, ...errorAnswers("storage_unavailable") },
};

export const getTenant = {
  operationId: "getTenant",
  tags,
  summary: "Get a tenant",
  description: "Its name, its limits and whether it is disabled.",
  params,
  response: { 200: tenant, ...errorAnswers("not_found", "storage_unavailable") },
};

export const updateTenant = {
  operationId: "updateTenant",
  tags,
  summary: "Change a tenant",
  description: "New limits hold at once. Running tasks beyond them are not aborted.",
  params,
  body: tenantChanges,
  response: { 200: tenant, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};

export const disableTenant = {
  operationId: "disableTenant",
  tags,
  summary: "Disable a tenant",
  description:
    "None of its tasks start, and none of its schedules fire. Running tasks finish, and submitted tasks wait.",
  params,
  response: { 200: tenant, ...errorAnswers("not_found", "storage_unavailable") },
};

export const enableTenant = {
  operationId: "enableTenant",
  tags,
  summary: "Enable a tenant",
  description: "Waiting tasks can start, and its schedules continue from now.",
  params,
  response: { 200: tenant, ...errorAnswers("not_found", "storage_unavailable") },
};

export const deleteTenant = {
  operationId: "deleteTenant",
  tags,
  summary: "Delete a tenant",
  description:
    "Deletes the tenant with everything that it owns, its keys first. The tenant `default` cannot be deleted: 409.",
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

import { z } from "zod";
import { AUDIT_FILTER } from "../model/input/audit-filter-input.ts";
import { errorAnswers } from "./error.ts";
import { querySchema } from "./input-schema.ts";
import { createdBy } from "./provenance.ts";
import { time } from "./time.ts";

const provenance = {
  createdBy: createdBy
    .exactOptional()
    .describe("Who made the change. Left out: an older version wrote the entry, or only the key is known."),
  parentTaskId: z.string().exactOptional().describe("The task in whose attempt the change was made."),
  rootTaskId: z.string().exactOptional().describe("The first task of the tree of that task."),
  depth: z.int().exactOptional().describe("How many tasks are above the change."),
};

const AUDIT_EXAMPLE = {
  at: "2026-03-08T12:00:01.005Z",
  keyId: "key_019a8f6e",
  route: "POST /v1/schedules",
  subject: "17",
  address: "203.0.113.7",
};

const auditRecord = z
  .strictObject({
    at: time,
    keyId: z.string().nullable().describe("Null: the change was made without an API key."),
    route: z.string().describe("What was done."),
    subject: z
      .string()
      .nullable()
      .describe("The id or name of the changed object; null: none, or erased with its tenant."),
    address: z
      .string()
      .exactOptional()
      .describe("The address of the caller; left out: the change did not come over HTTP."),
    ...provenance,
    status: z
      .int()
      .exactOptional()
      .describe("401, 403 or 429 if the request was refused; left out: it was carried out."),
    count: z.int().exactOptional().describe("With `status`: how many refused requests this entry counts."),
  })
  .meta({
    id: "AuditRecord",
    description: "A change or a refused request: who, what and when.",
    examples: [AUDIT_EXAMPLE],
  });

export const auditPage = z
  .strictObject({
    entries: z.array(auditRecord).readonly().describe("Newest first."),
    count: z.int().describe("Of this page."),
    nextCursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "AuditPage",
    description: "Entries of the audit log, newest first.",
    examples: [{ entries: [AUDIT_EXAMPLE], count: 1, nextCursor: null }],
  });

const auditQuery = querySchema(AUDIT_FILTER);

export const listAudit = {
  operationId: "listAudit",
  tags: ["audit"],
  summary: "Read the audit log",
  description:
    "Every change made with the keys of a tenant, and a sample of refused requests, newest first. Kept for 90 days (`audit.retentionDays`).",
  querystring: auditQuery,
  response: { 200: auditPage, ...errorAnswers("storage_unavailable") },
};

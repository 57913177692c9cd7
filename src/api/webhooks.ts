import { z } from "zod";
import { DELIVERY_EVENTS, DELIVERY_STATUSES, DELIVERY_WAITS } from "../model/delivery.ts";
import { DELIVERY_FILTER } from "../model/input/delivery-filter-input.ts";
import { TERMINAL_STATES } from "../model/task-state.ts";
import { errorAnswersWith } from "./error.ts";
import { querySchema } from "./input-schema.ts";
import { time } from "./time.ts";

const DELIVERY_EXAMPLE = {
  deliveryId: "whd_019a8f6e_42",
  event: "task.completed",
  taskId: "tsk_019a8f6e",
  url: "https://example.com/hooks/done",
  state: "done",
  status: "delivered",
  tries: 1,
  createdAt: "2026-03-08T12:00:01.005Z",
  lastTryAt: "2026-03-08T12:00:01.009Z",
  responseStatus: 204,
};

const BATCH_EXAMPLE = {
  deliveryId: "whd_019a8f6e_43",
  event: "batch.completed",
  batchId: "bat_019a8f6a",
  taskId: "tsk_019a8f6e",
  url: "https://example.com/hooks/batch",
  status: "pending",
  tries: 0,
  createdAt: "2026-03-08T12:00:01.005Z",
  nextTryAt: "2026-03-08T12:00:01.005Z",
};

export const delivery = z
  .strictObject({
    deliveryId: z
      .string()
      .describe("Also the `webhook-id` that the receiver gets, the same for every attempt."),
    event: z
      .enum(DELIVERY_EVENTS)
      .describe(
        "The event that it reports: the end of a task, whatever its outcome, or of all tasks of a batch.",
      ),
    batchId: z.string().exactOptional().describe("With `batch.completed`: the batch."),
    taskId: z.string().describe("With `batch.completed`: of its tasks, the one that was accepted last."),
    url: z.string(),
    state: z.enum(TERMINAL_STATES).exactOptional().describe("With `task.completed`: how the task had ended."),
    status: z
      .enum(DELIVERY_STATUSES)
      .describe("`pending` waits for its next attempt, `failed` has none left."),
    tries: z.int().describe("The number of attempts to deliver it."),
    createdAt: time,
    nextTryAt: time.exactOptional().describe("While pending."),
    waitsFor: z
      .enum(DELIVERY_WAITS)
      .exactOptional()
      .describe(
        "What it waits for while it is due and not sent yet. `slot`: a free slot of its tenant's share. `host`: its turn at a host " +
          "that is new or failing, and therefore gets few at a time. `tenant_disabled`: the tenant to be enabled.",
      ),
    lastTryAt: time.exactOptional(),
    responseStatus: z.int().exactOptional().describe("The HTTP status of the last response."),
    error: z.string().exactOptional().describe("Why the last attempt failed."),
  })
  .meta({
    id: "Delivery",
    description: "A callback to the URL of a task or a batch that has ended.",
    examples: [DELIVERY_EXAMPLE, BATCH_EXAMPLE],
  });

export const deliveryPage = z
  .strictObject({
    deliveries: z.array(delivery).readonly().describe("Newest first."),
    count: z.int().describe("Of this page."),
    nextCursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "DeliveryPage",
    description: "Callbacks, newest first.",
    examples: [{ deliveries: [DELIVERY_EXAMPLE], count: 1, nextCursor: null }],
  });

const deliveryQuery = querySchema(DELIVERY_FILTER);

// ------------------------------------------------------------------------------------------------------ operations

const tags = ["webhooks"];
const errorAnswers = errorAnswersWith({
  not_found: "delivery not found",
  conflict: "the delivery is pending: it will be sent anyway",
});
const params = z.strictObject({ id: z.string().describe("The `deliveryId`.") });

export const listDeliveries = {
  operationId: "listDeliveries",
  tags,
  summary: "List webhook deliveries",
  description:
    "The callbacks of tasks and batches and their outcomes, newest first. They are kept as long as their task.",
  querystring: deliveryQuery,
  response: { 200: deliveryPage, ...errorAnswers("storage_unavailable") },
};

export const getDelivery = {
  operationId: "getDelivery",
  tags,
  summary: "Get a webhook delivery",
  description: "One callback and its outcome.",
  params,
  response: { 200: delivery, ...errorAnswers("not_found", "storage_unavailable") },
};

export const resendDelivery = {
  operationId: "resendDelivery",
  tags,
  summary: "Send a webhook delivery again",
  description:
    "Sends it at once, with all its retries. 409 while it is pending, because then it will be sent anyway.",
  params,
  response: { 202: delivery, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};

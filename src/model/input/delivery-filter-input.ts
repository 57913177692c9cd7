import { DELIVERY_STATUSES, type DeliveryStatus } from "../delivery.ts";
import type { Fields } from "./field-checks.ts";
import { choice, name } from "./kinds.ts";
import { LIMIT_DEFAULT, type Page, pageCursor, pageLimit } from "./page-input.ts";
import { readFields } from "./read-fields.ts";
import { type FilterSchema, optional } from "./schema.ts";

/** Which deliveries to list. */
export const DELIVERY_FILTER = {
  noun: "filter",
  refusesNull: true,
  fields: {
    taskId: optional(name("the id of a task"), { description: "Of this task." }),
    status: optional(choice(DELIVERY_STATUSES), { description: "`pending`, `delivered` or `failed`." }),
    limit: pageLimit(),
    cursor: pageCursor(),
  },
} as const satisfies FilterSchema;

export interface ParsedDeliveryFilter extends Page {
  readonly taskId?: string;
  readonly status?: DeliveryStatus;
}

/** Parses the filter of a list of deliveries. Throws `invalid_field`. */
export function parseDeliveryFilter(filter: Fields): ParsedDeliveryFilter {
  return { limit: LIMIT_DEFAULT, ...readFields(DELIVERY_FILTER, filter) };
}

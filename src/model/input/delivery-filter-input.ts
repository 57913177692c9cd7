import { DELIVERY_STATUSES, type DeliveryStatus } from "../delivery.ts";
import {
  checkKnown,
  checkName,
  type Fields,
  invalidField,
  joinWithOr,
  optionalText,
  quoted,
} from "./field-checks.ts";
import { type Page, parsePage } from "./page-input.ts";

export interface ParsedDeliveryFilter extends Page {
  readonly taskId?: string;
  readonly status?: DeliveryStatus;
}

/** Parses the filter of a list of deliveries. Throws `invalid_field`. */
export function parseDeliveryFilter(filter: Fields): ParsedDeliveryFilter {
  checkKnown(filter, ["taskId", "status", "limit", "cursor"]);
  const taskId = checkName(filter, "taskId", "the id of a task");
  const status = parseStatus(optionalText(filter, "status"));
  return {
    ...(taskId === undefined ? {} : { taskId }),
    ...(status === undefined ? {} : { status }),
    ...parsePage(filter),
  };
}

function parseStatus(text: string | undefined): DeliveryStatus | undefined {
  const status = DELIVERY_STATUSES.find((each) => each === text);
  if (text === undefined || status !== undefined) return status;
  throw invalidField("status", `\`status\` must be ${joinWithOr(DELIVERY_STATUSES)}, not ${quoted(text)}`);
}

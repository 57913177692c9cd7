import { invalidField } from "./input/field-checks.ts";
import type { TaskOrder } from "./task-order.ts";

/** The prefix of a cursor, by order. The number of an event follows in the order `completed`, of a task in the others. */
const PREFIXES: Readonly<Record<TaskOrder, string>> = { newest: "", oldest: "o", completed: "c" };
const ORDERS = Object.keys(PREFIXES) as TaskOrder[];

/** The public cursor of the next page. It contains the order of its list. */
export function taskCursorText(cursor: number, order: TaskOrder = "newest"): string {
  return `${PREFIXES[order]}${cursor}`;
}

/** Undefined: the first page. Throws `invalid_field` for a cursor of another order, where it would mean another position. */
export function parseTaskCursor(text: string | undefined, order: TaskOrder = "newest"): number | undefined {
  if (text === undefined) return undefined;
  const [, prefix, digits] = /^([a-z]?)(\d{1,16})$/.exec(text) ?? [];
  const given = ORDERS.find((each) => PREFIXES[each] === prefix);
  const cursor = Number(digits);
  if (given === undefined || !Number.isSafeInteger(cursor)) {
    throw invalidField("cursor", "invalid cursor: `cursor` must be the `nextCursor` of the page before");
  }
  if (given === order) return cursor;
  throw invalidField(
    "cursor",
    `invalid cursor: it is of a list with the order \`${given}\`, and this one has \`${order}\`: send \`order=${given}\` with it, or leave \`cursor\` out to start from the first page`,
  );
}

import { type Fields, invalidField } from "../../model/input/field-checks.ts";
import { LIMIT_DEFAULT } from "../../model/input/page-input.ts";
import { readFields } from "../../model/input/read-fields.ts";
import { WORKER_PAGE } from "../../model/input/worker-schema.ts";

/** Where a worker is in the list. */
interface Position {
  readonly name: string;
  readonly id: string;
}

/** Which part of the list of workers a caller wants to see. Throws `invalid_field`. */
export function parseWorkerPage(fields: Fields): { readonly limit: number; readonly after?: Position } {
  const { limit = LIMIT_DEFAULT, cursor } = readFields(WORKER_PAGE, fields);
  return cursor === undefined ? { limit } : { limit, after: positionOf(cursor) };
}

/** The cursor after a worker, in base64url: its name may have any characters. */
export function workerCursor({ name, id }: Position): string {
  return Buffer.from(JSON.stringify([name, id])).toString("base64url");
}

function positionOf(cursor: string): Position {
  const text = Buffer.from(cursor, "base64url").toString();
  const [name, id] = listOf(text);
  // PostgreSQL does not store a zero byte, and refuses one in a query.
  if (typeof name === "string" && typeof id === "string" && !`${name}${id}`.includes("\0"))
    return { name, id };
  throw invalidField("cursor", "`cursor` must be the `nextCursor` of the page before");
}

function listOf(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

import { type Fields, invalidField, optionalNumber, optionalText } from "./field-checks.ts";

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1_000;

/** Which part of a list somebody wants to see. */
export interface Page {
  readonly limit: number;
  readonly cursor?: number;
}

/** Checks `limit` and `cursor`. Throws `invalid_field`. */
export function parsePage(fields: Fields): Page {
  const cursor = parseCursor(optionalText(fields, "cursor"));
  return {
    ...(cursor === undefined ? {} : { cursor }),
    limit: optionalNumber(fields, "limit", { min: 1, max: LIMIT_MAX }) ?? LIMIT_DEFAULT,
  };
}

function parseCursor(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const cursor = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(cursor)) return cursor;
  throw invalidField("cursor", "`cursor` must be the `nextCursor` of the page before");
}

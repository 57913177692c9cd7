import { type Fields, invalidField, optionalNumber, optionalText } from "./field-checks.ts";

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1_000;

export interface PageRules {
  readonly limitMax: number;
  /** The field of the previous page that contains the cursor. */
  readonly cursorName: string;
}

const USUAL: PageRules = { limitMax: LIMIT_MAX, cursorName: "nextCursor" };

/** The requested page of a list. */
export interface Page {
  readonly limit: number;
  readonly cursor?: number;
}

/** Checks `limit` and `cursor`. Throws `invalid_field`. */
export function parsePage(fields: Fields, { limitMax, cursorName } = USUAL): Page {
  const cursor = parseCursor(optionalText(fields, "cursor"), cursorName);
  return {
    ...(cursor === undefined ? {} : { cursor }),
    limit: parseLimit(fields, limitMax),
  };
}

/** The most entries of a page. Throws `invalid_field`. */
export function parseLimit(fields: Fields, limitMax = LIMIT_MAX): number {
  return optionalNumber(fields, "limit", { min: 1, max: limitMax }) ?? LIMIT_DEFAULT;
}

function parseCursor(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const cursor = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(cursor)) return cursor;
  throw invalidField("cursor", `\`cursor\` must be the \`${name}\` of the page before`);
}

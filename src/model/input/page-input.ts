import { checkText, invalidField } from "./field-checks.ts";
import { number } from "./kinds.ts";
import { type Field, type FilterSchema, type Kind, optional } from "./schema.ts";

export const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1_000;

/** The requested page of a list. */
export interface Page {
  readonly limit: number;
  readonly cursor?: number;
}

/** The field for the most entries of a page. */
export function pageLimit({ max = LIMIT_MAX, normally = LIMIT_DEFAULT } = {}): Field<number, number, false> {
  return optional(number({ min: 1, max }), {
    description: `The most entries on a page: 1 to ${max}.`,
    default: String(normally),
  });
}

/** The field for where a page begins. `name` is the field of the previous page that contains the cursor. */
export function pageCursor(name = "nextCursor"): Field<string, number, false> {
  return optional(cursor(name), { description: `\`${name}\` of the page before.` });
}

/** The page of a list without a filter. */
export const PAGE = {
  noun: "page",
  refusesNull: true,
  fields: { limit: pageLimit(), cursor: pageCursor() },
} as const satisfies FilterSchema;

function cursor(name: string): Kind<string, number> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      const text = checkText(value, field);
      if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
      throw invalidField(field, `\`${field}\` must be the \`${name}\` of the page before`);
    },
  };
}

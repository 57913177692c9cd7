import { parseRfc3339 } from "../text/rfc3339.ts";
import { type Fields, invalidField, quoted } from "./field-checks.ts";
import { name } from "./kinds.ts";
import { LIMIT_DEFAULT, type Page, pageCursor, pageLimit } from "./page-input.ts";
import { readFields } from "./read-fields.ts";
import { type FilterSchema, type Kind, optional } from "./schema.ts";

/** The year 9999. */
const SECONDS_MAX = 253_402_300_799;

/** Which audit entries to list. */
export const AUDIT_FILTER = {
  noun: "filter",
  refusesNull: true,
  fields: {
    since: optional(since(), { description: "Not before: seconds since 1970, or RFC 3339." }),
    keyId: optional(name("the id of a key"), { description: "With this key." }),
    tenantId: optional(name("the id of a tenant"), {
      description: "The tenant whose log to read, even a deleted one.",
      default: "the caller's own",
    }),
    limit: pageLimit(),
    cursor: pageCursor(),
  },
} as const satisfies FilterSchema;

export interface ParsedAuditFilter extends Page {
  readonly since?: number;
  readonly keyId?: string;
  readonly tenant?: string;
}

/** Parses the filter of a list of audit entries. Throws `invalid_field`. */
export function parseAuditFilter(filter: Fields): ParsedAuditFilter {
  const { tenantId, ...fields } = readFields(AUDIT_FILTER, filter);
  return { limit: LIMIT_DEFAULT, ...fields, ...(tenantId === undefined ? {} : { tenant: tenantId }) };
}

/** Read as milliseconds. */
function since(): Kind<string | number, number> {
  return {
    shape: { type: "union", of: [{ type: "number" }, { type: "time" }] },
    read: (value, field) => {
      if (typeof value === "number" && value >= 0 && value <= SECONDS_MAX) return value * 1_000;
      const moment = typeof value === "string" ? parseRfc3339(value) : null;
      if (moment !== null) return moment;
      throw invalidField(
        field,
        `\`${field}\` must be seconds since 1970 or an RFC 3339 time with a zone, like "2030-01-31T09:00:00Z", not ${quoted(value)}`,
      );
    },
  };
}

import { checkKnown, checkName, type Fields, invalidField, quoted } from "../model/input/field-checks.ts";
import { type Page, parsePage } from "../model/input/page-input.ts";
import { parseRfc3339 } from "../model/text/rfc3339.ts";

const FIELDS = ["since", "keyId", "limit", "cursor", "tenantId"];
/** The year 9999. */
const SECONDS_MAX = 253_402_300_799;

export interface ParsedAuditFilter extends Page {
  readonly since?: number;
  readonly keyId?: string;
  readonly tenant?: string;
}

/** Parses the filter of a list of audit entries. Throws `invalid_field`. */
export function parseAuditFilter(fields: Fields): ParsedAuditFilter {
  checkKnown(fields, FIELDS);
  const since = parseSince(fields["since"]);
  const keyId = checkName(fields, "keyId", "the id of a key");
  const tenant = checkName(fields, "tenantId", "the id of a tenant");
  return {
    ...parsePage({ limit: fields["limit"], cursor: fields["cursor"] }),
    ...(since === undefined ? {} : { since }),
    ...(keyId === undefined ? {} : { keyId }),
    ...(tenant === undefined ? {} : { tenant }),
  };
}

/** In milliseconds. */
function parseSince(since: unknown): number | undefined {
  if (since === undefined) return undefined;
  if (typeof since === "number" && since >= 0 && since <= SECONDS_MAX) return since * 1_000;
  const moment = typeof since === "string" ? parseRfc3339(since) : null;
  if (moment !== null) return moment;
  throw invalidField(
    "since",
    `\`since\` must be seconds since 1970 or an RFC 3339 time with a zone, like "2030-01-31T09:00:00Z", not ${quoted(since)}`,
  );
}

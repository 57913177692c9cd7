import {
  checkKnown,
  type Fields,
  invalidField,
  optionalNumber,
  optionalText,
} from "../../model/input/field-checks.ts";

const LIMIT_MAX = 1_000;

/** Which part of the list of agents a caller wants to see. Throws `invalid_field`. */
export function parseAgentPage(fields: Fields): { readonly limit: number; readonly after?: string } {
  checkKnown(fields, ["limit", "cursor"]);
  const limit = optionalNumber(fields, "limit", { min: 1, max: LIMIT_MAX }) ?? LIMIT_MAX;
  const cursor = optionalText(fields, "cursor");
  return cursor === undefined ? { limit } : { limit, after: idOf(cursor) };
}

/** The cursor after an agent, in base64url: an id may have spaces and slashes. */
export function agentCursor(id: string): string {
  return Buffer.from(id).toString("base64url");
}

function idOf(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString();
  if (cursor !== "" && agentCursor(id) === cursor) return id;
  throw invalidField("cursor", "`cursor` must be the `nextCursor` of the page before");
}

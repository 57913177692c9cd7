import { AGENT_PAGE, AGENT_PAGE_MAX } from "../../model/input/agent-schema.ts";
import { type Fields, invalidField } from "../../model/input/field-checks.ts";
import { readFields } from "../../model/input/read-fields.ts";

/** Which part of the list of agents a caller wants to see. Throws `invalid_field`. */
export function parseAgentPage(fields: Fields): { readonly limit: number; readonly after?: string } {
  const { limit = AGENT_PAGE_MAX, cursor } = readFields(AGENT_PAGE, fields);
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

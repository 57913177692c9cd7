/** Whose work a caller sees: that of a tenant, or of one agent in it. */
export interface Scope {
  readonly tenant: string;
  /** Left out: all agents of the tenant. */
  readonly agent?: string;
  /** Other agents that a caller for one agent may submit to; `*`: all. Left out: none. */
  readonly delegates?: readonly string[];
}

export const ALL_DELEGATES = "*";

/** The record, or null if another agent owns it: to the caller it does not exist. */
export function ownRecord<Record extends { readonly agent: string }>(
  { agent }: Scope,
  record: Record | null,
): Record | null {
  return agent === undefined || record?.agent === agent ? record : null;
}

import { DEFAULT_AGENT } from "../../model/agent.ts";
import { RotaError } from "../../model/errors.ts";
import { ownRecord, type Scope } from "../../model/scope.ts";
import { isTerminal, TASK_STATES } from "../../model/task-state.ts";
import type { SessionRecord, Storage } from "../../storage/storage.ts";
import { listRowPage } from "./list-page.ts";

const OPEN_STATES = TASK_STATES.filter((state) => !isTerminal(state));
/** How much of a session is read to find an open task of another agent. */
const OPEN_MAX = { pages: 20, limit: 100 } as const;

/** Null: there is none yet, so that any agent may begin it. Throws `not_found` if it belongs to another agent. */
export async function findOwnSession(
  storage: Storage,
  scope: Scope,
  key: string,
): Promise<SessionRecord | null> {
  const record = await storage.sessions.get({ tenant: scope.tenant, key });
  if (record === null) return null;
  if (ownRecord(scope, { agent: record.agent ?? DEFAULT_AGENT }) === null) throw sessionNotFound();
  return record;
}

/** Whether a task of another agent runs or waits in the session. Also true if it has too many tasks to check. */
export async function isShared(storage: Storage, scope: Scope, key: string): Promise<boolean> {
  const open = { tenant: scope.tenant, session: key, states: OPEN_STATES, limit: OPEN_MAX.limit };
  for (let cursor = {}, page = 0; page < OPEN_MAX.pages; page += 1) {
    const { items, nextCursor } = await listRowPage(storage, { ...open, ...cursor });
    if (items.some((row) => ownRecord(scope, row) === null)) return true;
    if (nextCursor === null) return false;
    cursor = { cursor: nextCursor };
  }
  return true;
}

export function sessionNotFound(): RotaError {
  return new RotaError("not_found", "session not found");
}

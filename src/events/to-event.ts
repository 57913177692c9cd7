import type { RotaEvent } from "../model/event.ts";
import type { Redactor } from "../model/redactor.ts";
import { rfc3339 } from "../model/text/rfc3339.ts";
import type { StoredEvent } from "../storage/storage.ts";

/** The public view of a stored event, with secrets masked. */
export function toEvent(stored: StoredEvent, redactor: Redactor): RotaEvent {
  const { data } = stored;
  return {
    seq: stored.seq,
    type: stored.type,
    tenantId: stored.tenant,
    taskId: stored.taskId,
    agentId: stored.agent,
    lane: stored.lane,
    ...(stored.batch === null ? {} : { batchId: stored.batch }),
    ...(stored.session === null ? {} : { sessionKey: stored.session }),
    ...(stored.schedule === null ? {} : { scheduleId: stored.schedule }),
    state: stored.state,
    timestamp: rfc3339(stored.at),
    ...resultOf(stored, redactor),
    ...(data?.error === undefined ? {} : { error: redactor.text(data.error) }),
    ...(data?.progress === undefined ? {} : { progress: redactor.json(data.progress) }),
    ...(data?.attempt === undefined ? {} : { attempt: data.attempt }),
    ...(data?.retryAt === undefined ? {} : { retryAt: rfc3339(data.retryAt) }),
    ...(data?.counts === undefined ? {} : { counts: data.counts }),
  };
}

/** A cancelled message of a session has an empty result, so that a client that shows the conversation stops waiting for it. */
function resultOf({ type, result, session }: StoredEvent, redactor: Redactor): { result?: unknown } {
  if (type === "task.completed") return { result: redactor.json(result) };
  return type === "task.cancelled" && session !== null ? { result: "" } : {};
}

import type { RotaEvent } from "../model/event.ts";
import type { Log } from "../model/log.ts";
import type { EventLog } from "./event-log.ts";

/** May be asynchronous. Rota does not wait for it. */
export type EventHandler = (event: RotaEvent) => void | Promise<void>;

/** Calls `handler` with every event from now on. If it throws or rejects, the error is logged and the calls continue. */
export function handleEvents(eventLog: EventLog, handler: EventHandler, log: Log): () => void {
  const failed = (event: RotaEvent, error: unknown) =>
    log.error({ error, event: event.type, taskId: event.taskId }, "an event handler failed");
  return eventLog.listen((event) => {
    try {
      const answer = handler(event);
      if (answer instanceof Promise) answer.catch((error) => failed(event, error));
    } catch (error) {
      failed(event, error);
    }
  });
}

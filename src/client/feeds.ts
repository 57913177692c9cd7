import type { EventsOptions } from "../interface/rota.ts";
import type { RotaEvent } from "../model/event.ts";
import type { Notification } from "../model/notification.ts";
import type { EventFeed } from "./event-stream.ts";

/** Events of tasks and batches. The server sends a heartbeat every 15 seconds. */
export function eventFeed({ agentId, batchId, sessionKey, scheduleId }: EventsOptions): EventFeed<RotaEvent> {
  return {
    path: "/v1/tasks/events",
    query: { agentId, batchId, sessionKey, scheduleId },
    silenceMaxMs: 45_000,
    name: "events",
    toItem: (seq, said) => ({ seq, ...said }) as RotaEvent,
  };
}

/** Notifications of schedules, their runs and workers. The server sends a heartbeat every 30 seconds. */
export const notificationFeed: EventFeed<Notification> = {
  path: "/v1/notifications/stream",
  query: {},
  silenceMaxMs: 90_000,
  name: "notifications",
  toItem: (id, said, type) => (type === "notification" ? ({ id, ...said } as Notification) : undefined),
};

import type { RotaEvent } from "../model/event.ts";
import type { Notification } from "../model/notification.ts";
import type { WorkerSignal } from "../model/worker.ts";

/** How long a browser waits before it connects again. */
const RECONNECT_MS = 1_000;

export const RECONNECT = `retry: ${RECONNECT_MS}\n`;

export const eventFrame = framed<RotaEvent>(
  ({ seq, ...event }) => `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
);

export const notificationFrame = framed<Notification>(
  ({ id, ...notification }) => `id: ${id}\nevent: notification\ndata: ${JSON.stringify(notification)}\n\n`,
);

export const signalFrame = framed<WorkerSignal>(
  ({ type, ...signal }) => `event: ${type}\ndata: ${JSON.stringify(signal)}\n\n`,
);

/** `from`: the position at which the stream continues, unless it was written just before. */
export function gapFrame(
  gap: { readonly after: number; readonly oldest: number },
  from: { readonly position: number | undefined } = { position: undefined },
): string {
  return `${positionLine(from)}event: gap\ndata: ${JSON.stringify(gap)}\n\n`;
}

/**
 * The position of a stream, written even when no event matches: a client that loses the connection resumes from there. Browsers
 * do not dispatch an event without data, but they keep its id.
 */
export function positionLine({ position }: { readonly position: number | undefined }): string {
  return position === undefined ? "" : `id: ${position}\n`;
}

/** An event that goes to many readers is encoded once. */
function framed<Item extends object>(toText: (item: Item) => string): (item: Item) => Buffer {
  const frames = new WeakMap<Item, Buffer>();
  return (item) => {
    const known = frames.get(item);
    if (known !== undefined) return known;
    const frame = Buffer.from(toText(item));
    frames.set(item, frame);
    return frame;
  };
}

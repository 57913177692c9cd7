import type { RotaEvent } from "../model/event.ts";
import type { Notification } from "../model/notification.ts";

/** How long a browser waits before it connects again. */
const RECONNECT_MS = 1_000;

export const RECONNECT = `retry: ${RECONNECT_MS}\n`;

export const eventFrame = framed<RotaEvent>(
  ({ seq, ...event }) => `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
);

export const notificationFrame = framed<Notification>(
  ({ id, ...notification }) => `id: ${id}\nevent: notification\ndata: ${JSON.stringify(notification)}\n\n`,
);

/** `from`: where the stream goes on, if it has not just said so. */
export function gapFrame(
  gap: { readonly after: number; readonly oldest: number },
  from: { readonly position: number | undefined } = { position: undefined },
): string {
  return `${place(from)}event: gap\ndata: ${JSON.stringify(gap)}\n\n`;
}

/**
 * Says how far a stream has come, also when nothing that was asked for has happened: whoever loses the connection
 * then goes on from there. An event without data is not told to anybody, but its id counts.
 */
export function place({ position }: { readonly position: number | undefined }): string {
  return position === undefined ? "" : `id: ${position}\n`;
}

/** What everybody is told is put into bytes once. */
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

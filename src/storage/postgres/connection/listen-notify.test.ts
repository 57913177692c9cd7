import { expect, test } from "vitest";
import type { StorageSignal } from "../../storage.ts";
import { Notifications, TOKENS_MAX } from "./listen-notify.ts";

/** What PostgreSQL refuses. */
const TOO_LONG = 8_000;

test("signals that are too long together go out one by one", async () => {
  const sent: StorageSignal[] = [];
  const notifications = new Notifications({
    config: {},
    self: "self",
    send: async (_channel, payload) => {
      if (payload.length >= TOO_LONG) throw new Error("payload string too long");
      sent.push(...JSON.parse(payload).signals);
    },
    hear: () => {},
  });
  const tokens = Array.from({ length: TOKENS_MAX }, (_, n) => 1_000_000_000_000_000 + n);
  const signals: StorageSignal[] = [
    { kind: "fenced", tokens, reason: "cancelled" },
    { kind: "fenced", tokens, reason: "preempted" },
    { kind: "work" },
  ];
  for (const signal of signals) notifications.notifyOthers(signal);
  await notifications.sendLast();
  expect(sent).toEqual(signals);
});

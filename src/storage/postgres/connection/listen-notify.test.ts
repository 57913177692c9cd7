import { expect, test } from "vitest";
import type { StorageSignal } from "../../storage.ts";
import { Notifications, TOKENS_MAX } from "./listen-notify.ts";

/** What PostgreSQL refuses. */
const TOO_LONG = 8_000;

/** Sends these signals at once. Returns what goes out. */
async function sendAll(signals: readonly StorageSignal[]): Promise<StorageSignal[]> {
  const sent: StorageSignal[] = [];
  const notifications = new Notifications({
    config: {},
    self: "self",
    send: async (_channel, payload) => {
      if (payload.length >= TOO_LONG) throw new Error("payload string too long");
      sent.push(...JSON.parse(payload).signals);
    },
    onSignal: () => {},
  });
  for (const signal of signals) notifications.notifyOthers(signal);
  await notifications.sendLast();
  return sent;
}

test("signals that are too long together go out one by one", async () => {
  const tokens = Array.from({ length: TOKENS_MAX }, (_, n) => 1_000_000_000_000_000 + n);
  const signals: StorageSignal[] = [
    { kind: "fenced", tokens, reason: "cancelled" },
    { kind: "fenced", tokens, reason: "preempted" },
    { kind: "work" },
  ];
  expect(await sendAll(signals)).toEqual(signals);
});

test("signals of work name all of their lanes, or none if one may be in any lane", async () => {
  const some: StorageSignal[] = [
    { kind: "work", lanes: ["a"] },
    { kind: "work", lanes: ["b", "a"] },
  ];
  expect(await sendAll(some)).toEqual([{ kind: "work", lanes: ["a", "b"] }]);
  expect(await sendAll([...some, { kind: "work" }])).toEqual([{ kind: "work" }]);
  expect(await sendAll([{ kind: "work" }, ...some])).toEqual([{ kind: "work" }]);
});

import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { serveRaw } from "../../../../test/support/raw-server.ts";
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

test("a connection on which it cannot listen is closed", async () => {
  const closed = Promise.withResolvers<string>();
  const url = new URL(await serveRaw((socket) => actAsStandby(socket, () => closed.resolve("closed"))));
  const notifications = new Notifications({
    config: { host: url.hostname, port: Number(url.port), user: "rota", password: "rota", database: "rota" },
    self: "self",
    send: async () => {},
    onSignal: () => {},
  });
  await expect(notifications.start()).rejects.toThrow("cannot execute LISTEN during recovery");
  expect(await closed.promise).toBe("closed");
});

/** Accepts any user, and refuses every query as a standby refuses LISTEN. */
function actAsStandby(socket: Socket, onClose: () => void): void {
  const ready = message("Z", "I");
  socket.on("close", onClose);
  socket.write(Buffer.concat([message("R", "\0\0\0\0"), ready]));
  socket.on("data", (data) => {
    // Clients say goodbye before they close.
    if (data[0] === "X".charCodeAt(0)) return;
    const fault = ["SERROR", "C25006", "Mcannot execute LISTEN during recovery", ""].join("\0");
    socket.write(Buffer.concat([message("E", `${fault}\0`), ready]));
  });
}

/** A message of the protocol of PostgreSQL. */
function message(type: string, body: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + Buffer.byteLength(body));
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body)]);
}

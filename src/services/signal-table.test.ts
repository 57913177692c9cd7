import { expect, test } from "vitest";
import type { StorageSignal } from "../storage/storage.ts";
import { wakeAt } from "./signal-table.ts";

function woken(signal: StorageSignal): string[] {
  const names: string[] = [];
  const keys = () => names.push("keys");
  const table = {
    events: [() => names.push("events")],
    tenants: [() => names.push("tenants"), keys],
    keys: [keys],
    reconnected: [() => names.push("heartbeat")],
  };
  wakeAt(table, signal);
  return names;
}

test("a signal wakes what its row names, and nothing else", () => {
  expect(woken({ kind: "tenants" })).toEqual(["tenants", "keys"]);
  expect(woken({ kind: "events" })).toEqual(["events"]);
  expect(woken({ kind: "work" })).toEqual([]);
  expect(woken({ kind: "fenced", tokens: [1], reason: "cancelled" })).toEqual([]);
});

test("after a reconnect everything wakes, each once", () => {
  expect(woken({ kind: "reconnected" })).toEqual(["events", "tenants", "keys", "heartbeat"]);
});

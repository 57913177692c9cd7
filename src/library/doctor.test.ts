import { afterEach, expect, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { away } from "../../test/support/storages.ts";
import { openSqlite } from "../storage/sqlite/open.ts";
import type { Storage } from "../storage/storage.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Gate } from "../testing/signals.ts";
import { examine } from "./doctor.ts";

let storage: Storage | undefined;
afterEach(() => storage?.close());

/** What the doctor says of clocks when the storage's answer takes `tookMs` and shows a clock that is off by `aheadMs`. */
async function clockFindings({ tookMs, aheadMs }: { tookMs: number; aheadMs: number }) {
  const clock = new ManualClock();
  const opened = await openSqlite({ path: ":memory:", clock });
  storage = opened;
  const slow: Storage = {
    ...opened,
    now: async () => {
      const seen = clock.now() + aheadMs;
      await clock.advance(tookMs);
      return seen;
    },
  };
  const { checks } = await examine({
    tenant: "default",
    storage: slow,
    clock,
    config: () => ({ ok: true }),
    runRetentionMs: () => 1_000,
    fires: () => false,
  });
  return checks.find(({ name }) => name === "clock")?.findings;
}

test("clocks that differ are told", async () => {
  expect(await clockFindings({ tookMs: 10, aheadMs: 5_000 })).toEqual([
    expect.stringContaining("4990 ms ahead of"),
  ]);
  expect(await clockFindings({ tookMs: 10, aheadMs: -5_000 })).toEqual([
    expect.stringContaining("5000 ms behind"),
  ]);
});

test("an answer that takes long is not taken for a clock that is wrong", async () => {
  expect(await clockFindings({ tookMs: 60_000, aheadMs: 0 })).toEqual([]);
});

test("whoever asks while somebody is being told shares the examination, and the next has one of its own", async () => {
  const gate = new Gate();
  let counted = 0;
  const { rota } = await openTestRota({
    meddler: {
      before: async ({ operation }) => {
        if (operation !== "counters.recountAll") return;
        counted += 1;
        await gate.opened;
      },
    },
  });
  const asked = [rota.doctor(), rota.doctor(), rota.doctor()];
  gate.open();
  const [first, ...others] = await Promise.all(asked);
  expect(first).toMatchObject({ ok: true });
  for (const other of others) expect(other).toBe(first);
  expect(counted).toBe(1);
  expect(await rota.doctor()).toEqual(first);
  expect(counted).toBe(2);
});

test("an examination that fails is not the answer to whoever asks later", async () => {
  let isAway = true;
  const { rota } = await openTestRota({
    meddler: {
      before: ({ operation }) => {
        if (isAway && operation === "counters.recountAll") throw away();
      },
    },
  });
  await expect(rota.doctor()).rejects.toMatchObject({ code: "storage_unavailable" });
  isAway = false;
  expect(await rota.doctor()).toMatchObject({ ok: true });
});

import { afterEach, describe, expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { away } from "../../../test/support/storages.ts";
import type { DoctorProgress } from "../../interface/doctor.ts";
import { openSqlite } from "../../storage/sqlite/connection/open.ts";
import type { Storage } from "../../storage/storage.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";
import { examine } from "./doctor.ts";

let storage: Storage | undefined;
afterEach(() => storage?.close());

/** The findings about clocks if the storage takes `tookMs` to respond and its clock is off by `aheadMs`. */
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
  const examined = await examine({
    storage: slow,
    clock,
    config: () => ({ ok: true }),
    runRetentionMs: () => 1_000,
    fires: () => false,
    hasLane: () => true,
    signal: new AbortController().signal,
    onProgress: () => {},
  });
  return examined("default").checks.find(({ name }) => name === "clock")?.findings;
}

test("clocks that differ are reported", async () => {
  expect(await clockFindings({ tookMs: 10, aheadMs: 5_000 })).toEqual([
    expect.stringContaining("4990 ms ahead of"),
  ]);
  expect(await clockFindings({ tookMs: 10, aheadMs: -5_000 })).toEqual([
    expect.stringContaining("5000 ms behind"),
  ]);
});

test("a slow response does not count as a wrong clock", async () => {
  expect(await clockFindings({ tookMs: 60_000, aheadMs: 0 })).toEqual([]);
});

test("callers that come while an examination is under way share it, and the next has one of its own", async () => {
  const latch = new Latch();
  let counted = 0;
  const { rota } = await openTestRota({
    meddler: {
      before: async ({ operation }) => {
        if (operation !== "counters.recountAll") return;
        counted += 1;
        await latch.opened;
      },
    },
  });
  const asked = [rota.doctor(), rota.doctor({ tenantId: "another" }), rota.doctor()];
  latch.open();
  const [first, ...others] = await Promise.all(asked);
  expect(first).toMatchObject({ ok: true });
  for (const other of others) expect(other).toEqual(first);
  expect(counted).toBe(1);
  expect(await rota.doctor()).toEqual(first);
  expect(counted).toBe(2);
});

test("an examination that fails is not the result of later callers", async () => {
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

describe("an examination in slices", () => {
  /** A Rota with more tasks than one slice looks at. */
  async function openBusy() {
    let counting = 0;
    const { rota } = await openTestRota({
      options: { scheduler: { maxQueueSize: 10_000, maxPerAgent: 10_000 } },
      meddler: {
        before: ({ operation }) => {
          if (operation === "counters.recountAll") counting += 1;
        },
      },
    });
    for (let batch = 0; batch < 50; batch += 1) {
      const tasks = Array.from({ length: 100 }, () => ({ message: "x", runAt: "2099-01-01T00:00:00Z" }));
      await rota.tasks.submitBatch({ tasks });
    }
    return { rota, counting: () => counting };
  }

  test("lets other work through, and says how far it is", async () => {
    const { rota } = await openBusy();
    const seen: DoctorProgress[] = [];
    const submitted: string[] = [];
    const report = await rota.doctor({
      onProgress: (progress) => {
        seen.push(progress);
        if (submitted.length === 0) {
          submitted.push("asked");
          rota.tasks.submit({ message: "meanwhile" }).then(({ state }) => submitted.push(state));
        }
        if (submitted.length === 2) submitted.push(progress.check);
      },
    });
    expect(report).toMatchObject({ ok: true });
    expect(submitted).toEqual(["asked", "queued", "counters"]);
    const counted = seen.filter(({ check }) => check === "counters");
    expect(counted.length).toBeGreaterThan(4);
    expect(counted.map(({ done }) => done)).toEqual(
      counted.map(({ done }) => done).toSorted((a, b) => a - b),
    );
    expect(counted.at(-1)?.total).toBeGreaterThanOrEqual(5_000);
  });

  test("stops when its only caller leaves, and not while another waits for it", async () => {
    const { rota, counting } = await openBusy();
    const leaving = new AbortController();
    let slices = 0;
    const left = rota.doctor({
      signal: leaving.signal,
      onProgress: () => {
        slices += 1;
        leaving.abort(new Error("left"));
      },
    });
    await expect(left).rejects.toThrow("left");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(slices).toBe(1);

    const leavingToo = new AbortController();
    const both = [
      rota.doctor({ signal: leavingToo.signal, onProgress: () => leavingToo.abort(new Error("left")) }),
      rota.doctor(),
    ] as const;
    await expect(both[0]).rejects.toThrow("left");
    expect(await both[1]).toMatchObject({ ok: true });
    expect(counting()).toBe(2);
    await expect(rota.doctor({ signal: AbortSignal.abort(new Error("never")) })).rejects.toThrow("never");
    expect(counting()).toBe(2);
  });
});

test("reports statistics over time that no node counts, or that do not add up", async () => {
  const clock = new ManualClock();
  const opened = await openSqlite({ path: ":memory:", clock });
  storage = opened;
  const row = {
    at: clock.now() - 3_600_000,
    key: "main",
    submitted: 1,
    started: 0,
    done: 0,
    failed: 0,
    cancelled: 0,
    tokens: 0,
    wait: { buckets: [], max: 0 },
    run: { buckets: [], max: 0 },
  };
  const rollups: Storage["rollups"] = {
    ...opened.rollups,
    lateMs: async () => 90_000,
    read: async ({ step, tenant }) => ({
      rows: tenant === "default" && step === 3_600 ? [row, row] : [row],
      next: null,
    }),
  };
  const examined = await examine({
    storage: { ...opened, rollups },
    clock,
    config: () => ({ ok: true }),
    runRetentionMs: () => 1_000,
    fires: () => true,
    hasLane: () => true,
    signal: new AbortController().signal,
    onProgress: () => {},
  });
  const findings = (tenant: string) =>
    examined(tenant).checks.find(({ name }) => name === "rollups")?.findings;
  expect(findings("default")).toEqual([
    "The statistics over time are 90 s behind: they should be a few seconds at most.",
    "The last whole hour counts submitted/started/done/failed/cancelled/tokens as 2/0/0/0/0/0, its minutes as 1/0/0/0/0/0 by lane and 1/0/0/0/0/0 by agent.",
  ]);
  expect(findings("another")?.[1]).toBe("Tenant default: its statistics over time do not add up.");
});

test("agents and schedules whose lane does not exist are named, those of other tenants only counted", async () => {
  const { rota } = await openTestRota({ options: { lanes: { crawl: 1 } } });
  const { id: other } = await rota.tenants.create({ name: "other" });
  for (const lane of ["crawl", "crwal"]) {
    await rota.agents.create({ id: lane, lane });
    await rota.schedules.create({ schedule: "every 1 h", message: "x", lane });
  }
  await rota.tenant(other).agents.create({ id: "a", lane: "none" });
  const { ok, checks } = await rota.doctor();
  expect(ok).toBe(false);
  expect(checks.find(({ name }) => name === "lanes")?.findings).toEqual([
    'The agent "crwal" names the lane "crwal", which does not exist, so its tasks use "main": create the lane, or name another.',
    expect.stringMatching(/^Schedule #\d+ names the lane "crwal", which does not exist/),
    `Tenant ${other}: 1 of its agents and schedules name lanes that do not exist.`,
  ]);
  await rota.lanes.put("crwal", { concurrency: 1 });
  await rota.lanes.put("none", { concurrency: 1 });
  expect(await rota.doctor()).toMatchObject({ ok: true });
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { SteppedClock } from "../../conformance/connection/clock.ts";
import { FAST_FLUSHES_MAX, FAST_FLUSHES_MIN, HANDOVER_MS, WalSync } from "./wal-sync.ts";

const FAST_MS = 0.1;
const SLOW_MS = 5;
/** As many fast flushes save the time of a slow one. */
const WORTH_A_SLOW_ONE = Math.ceil(SLOW_MS / HANDOVER_MS);

/** A log whose flushes take `took.ms`, and which of the two ways of flushing each used. */
function openLog() {
  const folder = mkdtempSync(join(tmpdir(), "rota-wal-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "rota.db-wal"), "");
  const clock = new SteppedClock();
  const took = { ms: FAST_MS };
  const ways: ("pool" | "this thread")[] = [];
  const sync = new WalSync(join(folder, "rota.db"), clock, {
    inThreadPool: async () => {
      ways.push("pool");
      clock.step(took.ms);
    },
    inThisThread: () => {
      ways.push("this thread");
      clock.step(took.ms);
    },
  });
  onTestFinished(() => sync.close());
  /** Which way the flush of one commit goes. */
  const flush = async (hasSingleWaiter: boolean) => {
    sync.committed();
    await sync.durable({ hasSingleWaiter });
    return ways.at(-1);
  };
  const flushMany = async (count: number, hasSingleWaiter: boolean) => {
    for (let n = 0; n < count; n += 1) await flush(hasSingleWaiter);
  };
  return { sync, took, ways, flush, flushMany };
}

describe("the flush for a lone caller", () => {
  test("stays in this thread once enough flushes were fast", async () => {
    const { flush, flushMany, ways } = openLog();
    await flushMany(FAST_FLUSHES_MIN, true);
    expect(ways).not.toContain("this thread");
    expect(await flush(true)).toBe("this thread");
  });

  test("goes to another thread after a slow one until fast ones would have saved as much time", async () => {
    const { took, flush, flushMany } = openLog();
    await flushMany(FAST_FLUSHES_MIN, true);
    for (const slowMs of [1, SLOW_MS]) {
      took.ms = slowMs;
      expect(await flush(true)).toBe("this thread");
      took.ms = FAST_MS;
      for (let n = 0; n < Math.ceil(slowMs / HANDOVER_MS); n += 1) expect(await flush(true)).toBe("pool");
      expect(await flush(true)).toBe("this thread");
    }
  });

  test("stays in this thread most of the time if a flush is slow now and then", async () => {
    const { took, flush, flushMany, ways } = openLog();
    for (let n = 0; n < 20; n += 1) {
      await flushMany(99, true);
      took.ms = 1;
      await flush(true);
      took.ms = FAST_MS;
    }
    expect(ways.filter((way) => way === "this thread").length).toBeGreaterThan(ways.length * 0.7);
  });

  test("stays in this thread as before on a disk that was slow for a while and is fast since long", async () => {
    const { took, flush, flushMany } = openLog();
    took.ms = SLOW_MS;
    await flushMany(100, true);
    took.ms = FAST_MS;
    await flushMany(FAST_FLUSHES_MAX - 1, true);
    expect(await flush(true)).toBe("pool");
    expect(await flush(true)).toBe("this thread");
    took.ms = SLOW_MS;
    expect(await flush(true)).toBe("this thread");
    took.ms = FAST_MS;
    await flushMany(WORTH_A_SLOW_ONE, true);
    expect(await flush(true)).toBe("this thread");
  });

  test("never stops this thread on a disk that is slow", async () => {
    const { took, flushMany, ways } = openLog();
    took.ms = SLOW_MS;
    await flushMany(3 * FAST_FLUSHES_MIN, true);
    expect(ways).not.toContain("this thread");
  });

  test("joins those that already wait", async () => {
    const { sync, flushMany, ways } = openLog();
    await flushMany(FAST_FLUSHES_MIN, false);
    sync.committed();
    const first = sync.durable();
    sync.committed();
    await Promise.all([first, sync.durable({ hasSingleWaiter: true })]);
    expect(ways).not.toContain("this thread");
  });

  test("does not flush what is on the disk", async () => {
    const { sync, flushMany, ways } = openLog();
    await flushMany(FAST_FLUSHES_MIN, true);
    await sync.durable({ hasSingleWaiter: true });
    expect(ways).toHaveLength(FAST_FLUSHES_MIN);
  });
});

test("callers that wait together share a flush in another thread", async () => {
  const { flush, flushMany, ways } = openLog();
  await flushMany(FAST_FLUSHES_MIN, true);
  expect(await flush(false)).toBe("pool");
  expect(ways).not.toContain("this thread");
});

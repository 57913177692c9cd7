import { expect, test } from "vitest";
import { RecordingLog } from "../../test/support/recording-log.ts";
import { away } from "../../test/support/storages.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import { Latch } from "../testing/signals.ts";
import { Service } from "./service.ts";

class Ticker extends Service {
  readonly name = "ticker";
  ticks = 0;
  work: () => number | Promise<number> = () => 1_000;

  async tick(): Promise<number> {
    this.ticks += 1;
    return this.work();
  }
}

function makeTicker() {
  const clock = new ManualClock();
  const log = new RecordingLog();
  return { clock, log, ticker: new Ticker({ clock, log, random: () => 0 }) };
}

test("ticks at once when started, then whenever the tick said", async () => {
  const { clock, ticker } = makeTicker();
  ticker.start();
  await settle();
  expect(ticker.ticks).toBe(1);
  await clock.advance(3_000);
  expect(ticker.ticks).toBe(4);
});

test("does nothing before it is started and after it is stopped", async () => {
  const { clock, ticker } = makeTicker();
  ticker.wake();
  await clock.advance(5_000);
  expect(ticker.ticks).toBe(0);
  ticker.start();
  await settle();
  await ticker.stop();
  await ticker.stop();
  ticker.wake();
  await clock.advance(5_000);
  expect([ticker.ticks, clock.pending]).toEqual([1, 0]);
});

test("many wake-ups in one turn make one tick", async () => {
  const { ticker } = makeTicker();
  ticker.start();
  await settle();
  for (let i = 0; i < 10; i++) ticker.wake();
  await settle();
  expect(ticker.ticks).toBe(2);
});

test("a wake-up before the first await of a tick brings another after it, never beside it", async () => {
  const { ticker } = makeTicker();
  const latch = new Latch();
  ticker.work = async () => {
    if (ticker.ticks === 1) ticker.wake();
    await latch.opened;
    return 1_000;
  };
  ticker.start();
  await settle();
  expect(ticker.ticks).toBe(1);
  latch.open();
  await settle();
  expect(ticker.ticks).toBe(2);
});

test("a wake-up during a tick brings another after it, never beside it", async () => {
  const { ticker } = makeTicker();
  const latch = new Latch();
  ticker.work = async () => {
    await latch.opened;
    return 1_000;
  };
  ticker.start();
  await settle();
  ticker.wake();
  ticker.wake();
  await settle();
  expect(ticker.ticks).toBe(1);
  latch.open();
  await settle();
  expect(ticker.ticks).toBe(2);
});

test("a wake-up for later moves the next tick forward, never back", async () => {
  const { clock, ticker } = makeTicker();
  ticker.start();
  await settle();
  ticker.wake(400);
  ticker.wake(700);
  await clock.advance(400);
  expect(ticker.ticks).toBe(2);
  await clock.advance(999);
  expect(ticker.ticks).toBe(2);
});

test("stopping waits for the tick under way", async () => {
  const { ticker } = makeTicker();
  const latch = new Latch();
  let ended = false;
  ticker.work = async () => {
    await latch.opened;
    ended = true;
    return 0;
  };
  ticker.start();
  await settle();
  const stopped = ticker.stop();
  latch.open();
  await stopped;
  expect(ended).toBe(true);
});

test("failures are waited out ever more patiently, and logged once", async () => {
  const { clock, log, ticker } = makeTicker();
  let broken = true;
  ticker.work = () => {
    if (broken) throw away();
    return 60_000;
  };
  ticker.start();
  await clock.advance(50 + 100 + 200);
  expect(ticker.ticks).toBe(4);
  ticker.wake();
  await settle();
  expect(ticker.ticks).toBe(4);
  await clock.advance(60_000);
  const tries = ticker.ticks;
  expect(tries).toBeLessThan(20);
  expect(log.messages()).toEqual(["the storage does not respond; trying again until it does"]);

  broken = false;
  await clock.advance(5_000);
  expect(ticker.ticks).toBe(tries + 1);
  expect(log.messages("info")).toEqual(["works again"]);
});

test("an error other than a lost connection is logged as an error", async () => {
  const { log, ticker } = makeTicker();
  ticker.work = () => {
    throw new Error("a bug");
  };
  ticker.start();
  await settle();
  expect(log.messages("error")).toEqual(["failed; trying again"]);
});

test("a wake-up during a tick that fails is not forgotten", async () => {
  const { clock, ticker } = makeTicker();
  const latch = new Latch();
  let first = true;
  ticker.work = async () => {
    if (!first) return 60_000;
    first = false;
    await latch.opened;
    throw away();
  };
  ticker.start();
  await settle();
  ticker.wake();
  latch.open();
  await clock.advance(50);
  expect(ticker.ticks).toBe(2);
});

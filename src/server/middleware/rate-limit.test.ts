import { expect, test, vi } from "vitest";
import { ManualClock } from "../../testing/manual-clock.ts";
import { RateLimit, type RateLimitOptions } from "./rate-limit.ts";

function openLimit(options: Partial<RateLimitOptions> = {}) {
  const clock = new ManualClock();
  const onRefused = vi.fn();
  const limit = new RateLimit({ perSecond: 1, burst: 2, maxExpensive: 2, ...options }, clock, onRefused);
  return { limit, clock, onRefused };
}

test("a bucket never holds more than its burst, however long there was no request", async () => {
  const { limit, clock, onRefused } = openLimit();
  await clock.advance(60_000);
  limit.take("a");
  await clock.advance(60_000);
  limit.take("a");
  limit.take("a");
  expect(() => limit.take("a")).toThrow(/more than 1 requests a second/);
  expect(onRefused).toHaveBeenCalledTimes(1);
});

test("an expensive request takes more, and a refusal says when there will be enough", async () => {
  const { limit, clock } = openLimit({ perSecond: 10, burst: 100 });
  limit.take("a", 60);
  expect(() => limit.take("a", 60)).toThrow(
    expect.objectContaining({
      code: "rate_limited",
      message: expect.stringContaining("costs as much as 60 small ones"),
      details: { cost: 60, perSecond: 10, burst: 100 },
      retryAfterSec: 2,
    }),
  );
  limit.take("b", 60);
  await clock.advance(2_000);
  limit.take("a", 60);
});

test("a request that costs more than a bucket holds takes a full one, and the next requests wait for the rest", async () => {
  const { limit, clock } = openLimit({ perSecond: 10, burst: 20 });
  limit.take("a", 50);
  expect(() => limit.take("a")).toThrow(expect.objectContaining({ retryAfterSec: 4 }));
  await clock.advance(4_900);
  expect(() => limit.take("a", 50)).toThrow();
  await clock.advance(100);
  limit.take("a", 50);
});

test("settling gives back what was not used, and charges the excess up to one burst of debt", async () => {
  const { limit, clock } = openLimit({ perSecond: 10, burst: 20 });
  limit.take("a", 20);
  limit.settle("a", -15);
  limit.take("a", 15);
  limit.settle("a", 1_000);
  await clock.advance(2_000);
  expect(() => limit.take("a")).toThrow();
  await clock.advance(100);
  limit.take("a");
});

test("few expensive requests of one key are in flight at once, whatever other keys do", () => {
  const { limit, onRefused } = openLimit();
  const leave = limit.enter("a");
  limit.enter("a");
  expect(() => limit.enter("a")).toThrow(
    expect.objectContaining({ code: "rate_limited", details: { inFlight: 2, max: 2 } }),
  );
  expect(onRefused).toHaveBeenCalledTimes(1);
  limit.enter("b");
  leave();
  leave();
  limit.enter("a");
  expect(() => limit.enter("a")).toThrow();
});

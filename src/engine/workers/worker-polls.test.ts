import { expect, test } from "vitest";
import { ManualClock } from "../../testing/manual-clock.ts";
import { POLLS_MAX, type PollRequest, WorkerPolls } from "./worker-polls.ts";

function openPolls(tenantMax = POLLS_MAX) {
  let random = 0;
  let version = 0;
  const clock = new ManualClock();
  const polls = new WorkerPolls({
    clock,
    random: () => random,
    tenantMax: () => tenantMax,
    timedTokens: true,
    heldBy: () => 0,
    agentsVersion: () => version,
  });
  let workers = 0;
  const request = (
    tenant: string,
    waitMs = 25_000,
    {
      registered = ["py"],
      slots = 1,
      ...more
    }: Partial<PollRequest> & { registered?: string[]; slots?: number } = {},
  ): PollRequest => {
    workers += 1;
    return {
      worker: { id: `wrk_${workers}`, tenant, agents: registered, slots },
      claimId: `claim-${workers}`,
      max: slots,
      agents: null,
      except: () => [],
      waitMs,
      gone: new AbortController().signal,
      ...more,
    };
  };
  return {
    ...{ clock, polls },
    add: (...about: Parameters<typeof request>) => polls.add(request(...about)),
    agentsChanged: () => {
      version += 1;
    },
    useRandom: (value: number) => {
      random = value;
    },
  };
}

test("as many polls wait as a node allows, and the next is asked to come later, each at another time", () => {
  const { polls, add, useRandom } = openPolls();
  for (let n = 0; n < POLLS_MAX; n++) add("acme");
  expect(polls.size).toBe(POLLS_MAX);
  expect(() => add("other")).toThrow(
    expect.objectContaining({ code: "too_many_polls", status: 429, retryAfterSec: 1 }),
  );
  useRandom(0.9);
  expect(() => add("acme")).toThrow(expect.objectContaining({ code: "too_many_polls", retryAfterSec: 3 }));
});

test("a tenant that has its share of the waiting polls leaves the rest to others", () => {
  const { polls, add } = openPolls(100);
  for (let n = 0; n < 100; n++) add("greedy");
  expect(() => add("greedy")).toThrow(expect.objectContaining({ code: "too_many_polls" }));
  add("modest");
  expect([polls.isNearlyFull("greedy"), polls.isNearlyFull("modest")]).toEqual([true, false]);
});

test("a node is nearly full from nine tenths of the polls that may wait on it, and no longer once some have ended", () => {
  const { polls, add } = openPolls(100);
  for (let n = 0; n < 89; n++) add("acme");
  expect(polls.isNearlyFull("acme")).toBe(false);
  const last = add("acme");
  expect(polls.isNearlyFull("acme")).toBe(true);
  polls.end(last, "waited");
  expect(polls.isNearlyFull("acme")).toBe(false);
});

test("long waits that end within a second of each other end together, none later than it asked for", async () => {
  const { clock, add } = openPolls();
  const ended: { readonly at: number; readonly waitMs: number }[] = [];
  const began = clock.monotonic();
  for (const waitMs of [10_020, 10_250, 10_980, 11_990, 7_123]) {
    const poll = add("acme", waitMs);
    poll.isAsking = false;
    void poll.answer.then(() => ended.push({ at: clock.monotonic() - began, waitMs }));
  }
  for (let ms = 0; ms < 12_000; ms++) await clock.advance(1);
  expect(ended.map(({ waitMs }) => waitMs)).toEqual([7_123, 10_020, 10_250, 10_980, 11_990]);
  expect(ended.every(({ at, waitMs }) => at <= waitMs && at > waitMs - 1_000)).toBe(true);
  expect(ended[0]?.at).toBe(7_123);
  expect(new Set(ended.slice(1).map(({ at }) => at)).size).toBe(2);
});

test("polls with the same agents are one group, in whatever order they name them", () => {
  const { polls, add } = openPolls();
  const registered = [
    ["a", "b", "c"],
    ["c", "b", "a", "a"],
  ];
  for (let n = 0; n < 20; n++) add("acme", 25_000, { registered: registered[n % 2] ?? [] });
  for (let n = 0; n < 20; n++)
    add("acme", 25_000, { registered: ["*"], agents: n % 2 === 0 ? ["b", "d"] : ["d", "b"] });
  // A ready task needs one of a group: not all of them are asked.
  expect(polls.next(new Set(["c"]))).toHaveLength(16);
  expect(polls.next(new Set(["b"]))).toHaveLength(32);
});

test("which agents a poll may not run is read again when agents have changed", () => {
  const { polls, add, agentsChanged } = openPolls();
  let excluded: string[] = [];
  for (let n = 0; n < 20; n++) add("acme", 25_000, n === 19 ? {} : { except: () => excluded });
  expect(polls.next(null)).toHaveLength(16);
  excluded = ["py"];
  agentsChanged();
  // Those that may run it are another group now.
  const asked = polls.next(null).map((poll) => poll.ask(0).except);
  expect(asked.filter((except) => except === undefined)).toHaveLength(1);
  expect(asked.filter((except) => except?.includes("py"))).toHaveLength(16);
  polls.endAll("draining");
  expect(polls.next(null)).toEqual([]);
});

test("a poll brings tokens for the free slots of its worker, and some more, because others may have become free", () => {
  const poll = openPolls().add("acme", 25_000, { slots: 60 });
  const counts = [55, 60, 20, 0, 59].map((held) => poll.ask(held).tokens.length);
  expect(counts).toEqual([10, 10, 40, 60, 10]);
  expect(poll.ask(0).tokens).toEqual(poll.tokens);
});

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { RotaEvent } from "../../../src/client/index.ts";
import { QueryClient } from "../queries/query-client.ts";
import type { Channel, TabMessage } from "./channel.ts";
import { HeartbeatLeadership, type Leadership } from "./leadership.ts";
import { LiveFeed, type LiveFeedOptions } from "./live-feed.ts";
import { LiveQueries } from "./live-queries.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Tabs that receive each other's messages. */
function newRoom(): () => Channel {
  const all = new Set<{ listeners: Set<(message: TabMessage) => void> }>();
  return () => {
    const own = { listeners: new Set<(message: TabMessage) => void>() };
    all.add(own);
    return {
      post: (message) => {
        for (const other of all) {
          if (other !== own)
            for (const listener of [...other.listeners]) queueMicrotask(() => listener(message));
        }
      },
      listen: (listener) => {
        own.listeners.add(listener);
        return () => own.listeners.delete(listener);
      },
      close: () => void all.delete(own),
    };
  };
}

function event(seq: number, fields: Partial<RotaEvent> = {}): RotaEvent {
  return {
    seq,
    type: "task.started",
    tenantId: "default",
    taskId: `tsk_${seq}`,
    agentId: "a",
    lane: "main",
    state: "running",
    timestamp: "2026-03-08T12:00:00.000Z",
    ...fields,
  };
}

/** A server whose events a test sends. */
class FakeServer {
  readonly opened: (number | undefined)[] = [];
  #push: ((event: RotaEvent) => void) | undefined;
  refuses = false;

  readonly open: LiveFeedOptions["open"] = ({ after, signal, onStatus }) => {
    this.opened.push(after);
    const waiting: RotaEvent[] = [];
    let wake = () => {};
    this.#push = (each) => {
      waiting.push(each);
      wake();
    };
    signal.addEventListener("abort", () => wake());
    const refuses = this.refuses;
    onStatus("live");
    return {
      position: after,
      async *[Symbol.asyncIterator]() {
        if (refuses) throw new Error("refused");
        while (!signal.aborted) {
          for (const each of waiting.splice(0)) yield each;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      },
    };
  };

  send(...events: RotaEvent[]): void {
    for (const each of events) this.#push?.(each);
  }
}

function newTab(room: () => Channel, server: FakeServer, id: string) {
  const channel = room();
  const received: number[] = [];
  const ends: string[] = [];
  let changes = 0;
  const feed = new LiveFeed({
    id,
    channel,
    leadership: new HeartbeatLeadership(channel, id),
    open: server.open,
    isRefusal: (error) => (error as Error).message === "refused",
    onRefused: () => ends.push("refused"),
    onSignedOut: () => ends.push("signed out"),
  });
  feed.subscribe({
    onEvents: (events) => received.push(...events.map(({ seq }) => seq)),
    onChanged: () => {
      changes += 1;
    },
  });
  feed.start();
  return { feed, received, ends, changes: () => changes };
}

describe("tabs without locks", () => {
  test("agree on one that reads, and read on after the last event when it goes", async () => {
    const room = newRoom();
    const server = new FakeServer();
    const tabs = ["c", "a", "b"].map((id) => newTab(room, server, id));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(server.opened).toEqual([undefined]);
    server.send(event(1), event(2));
    await vi.advanceTimersByTimeAsync(100);
    expect(tabs.map(({ received }) => received)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
    // The one with the smallest id leads.
    tabs[1]?.feed.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.opened).toEqual([undefined, 2]);
    server.send(event(3));
    await vi.advanceTimersByTimeAsync(100);
    expect([tabs[0]?.received, tabs[2]?.received]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
  });

  test("look again when the one that read goes before the first event: what happened until the next reads is not published", async () => {
    const room = newRoom();
    const server = new FakeServer();
    const tabs = ["c", "a", "b"].map((id) => newTab(room, server, id));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(tabs.map(({ changes }) => changes())).toEqual([0, 0, 0]);
    tabs[1]?.feed.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.opened).toEqual([undefined, undefined]);
    expect([tabs[0]?.changes(), tabs[2]?.changes()]).toEqual([1, 1]);
  });

  test("take over from one that is gone without a word", async () => {
    const room = newRoom();
    const server = new FakeServer();
    const channel = room();
    newTab(room, server, "b");
    // Another that says that it leads, and then nothing more.
    const beat = setInterval(() => channel.post({ kind: "beat", from: "a" }), 100);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(server.opened).toEqual([]);
    clearInterval(beat);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(server.opened).toHaveLength(1);
  });

  test("take over at once from one that is being closed, and not from one that stays", async () => {
    const room = newRoom();
    const led: string[] = [];
    const lead = (id: string) => async () => void led.push(id);
    const channel = room();
    const closing = new HeartbeatLeadership(channel, "a");
    closing.join(lead("a"));
    await vi.advanceTimersByTimeAsync(1_000);
    const other = new HeartbeatLeadership(room(), "b");
    other.join(lead("b"));
    await vi.advanceTimersByTimeAsync(1_000);
    closing.mayEnd();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(led).toEqual(["a"]);
    closing.mayEnd();
    // A closed tab sends nothing any more.
    channel.post = () => {};
    await vi.advanceTimersByTimeAsync(600);
    expect(led).toEqual(["a", "b"]);
  });

  test("of two that lead one steps down", async () => {
    const room = newRoom();
    const server = new FakeServer();
    const led: string[] = [];
    const lead = (id: string) => async (signal: AbortSignal) => {
      led.push(id);
      signal.addEventListener("abort", () => led.push(`${id} down`));
    };
    const [one, other] = [room(), room()];
    const leaders: Leadership[] = [new HeartbeatLeadership(one, "a")];
    leaders[0]?.join(lead("a"));
    await vi.advanceTimersByTimeAsync(1_000);
    // It received nothing from the first, as after a computer slept.
    const deaf = { ...other, listen: () => () => {} } as Channel;
    const late = new HeartbeatLeadership(deaf, "b");
    late.join(lead("b"));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(led).toEqual(["a", "b"]);
    other.post({ kind: "beat", from: "0" });
    await vi.advanceTimersByTimeAsync(100);
    expect(led).toEqual(["a", "b", "a down"]);
    expect(server.opened).toEqual([]);
  });

  test("sign out together, and are refused together", async () => {
    const room = newRoom();
    const server = new FakeServer();
    const [one, other] = [newTab(room, server, "a"), newTab(room, server, "b")];
    await vi.advanceTimersByTimeAsync(2_000);
    one.feed.stop({ signedOut: true });
    await vi.advanceTimersByTimeAsync(100);
    expect(other.ends).toEqual(["signed out"]);
    server.refuses = true;
    const third = newTab(room, server, "c");
    other.feed.stop();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(third.ends).toEqual(["refused"]);
  });
});

test("more than 200 events a second are no longer published one by one, until it is calm again", async () => {
  const server = new FakeServer();
  const { feed, received, changes } = newTab(newRoom(), server, "a");
  await vi.advanceTimersByTimeAsync(2_000);
  server.send(...Array.from({ length: 250 }, (_, n) => event(n + 1)));
  await vi.advanceTimersByTimeAsync(100);
  expect([feed.status.get(), received.length, changes()]).toEqual(["busy", 0, 1]);
  await vi.advanceTimersByTimeAsync(4_000);
  expect(feed.status.get()).toBe("live");
  server.send(event(251));
  await vi.advanceTimersByTimeAsync(100);
  expect(received).toEqual([251]);
});

test("a tab that was hidden for a minute reads nothing, and looks again when it is shown", async () => {
  const server = new FakeServer();
  const { feed, changes } = newTab(newRoom(), server, "a");
  await vi.advanceTimersByTimeAsync(2_000);
  feed.setHidden(true);
  await vi.advanceTimersByTimeAsync(59_000);
  feed.setHidden(false);
  expect([server.opened.length, changes()]).toEqual([1, 0]);
  feed.setHidden(true);
  await vi.advanceTimersByTimeAsync(61_000);
  feed.setHidden(false);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([server.opened, changes()]).toEqual([[undefined, undefined], 1]);
});

describe("queries", () => {
  async function openQuery() {
    const server = new FakeServer();
    const { feed } = newTab(newRoom(), server, "a");
    const client = new QueryClient();
    const live = new LiveQueries(client, feed);
    live.start();
    let reads = 0;
    let isSlow = false;
    const away = { isAway: false };
    const held = { isHeld: false };
    const slow = (value: boolean) => {
      isSlow = value;
    };
    const query = client.query<{ n: number }>(["n"]);
    const observer = {
      isEnabled: true,
      read: async () => {
        const n = ++reads;
        if (away.isAway) throw new Error("not reached");
        while (isSlow) await new Promise((resolve) => setTimeout(resolve, 50));
        return { n };
      },
      meta: {
        live: ({ lane }: RotaEvent) => lane === "main",
        isHeld: () => held.isHeld,
        patch: (data: { n: number }, events: readonly RotaEvent[]) =>
          events.some(({ taskId }) => taskId === "patched") ? { n: 100 } : data,
      },
    };
    const leave = query.subscribe(() => {}, { current: observer });
    void query.fetch();
    await vi.advanceTimersByTimeAsync(2_000);
    return {
      server,
      feed,
      away,
      held,
      live,
      slow,
      leave,
      isStale: () => query.isStale(Number.POSITIVE_INFINITY),
      reads: () => reads,
      data: () => query.state.data?.n,
    };
  }

  test("are read anew a quarter of a second after an event, and no more than once a second", async () => {
    const { server, reads } = await openQuery();
    expect(reads()).toBe(1);
    server.send(event(1));
    await vi.advanceTimersByTimeAsync(200);
    expect(reads()).toBe(1);
    await vi.advanceTimersByTimeAsync(150);
    expect(reads()).toBe(2);
    for (let n = 2; n < 32; n++) {
      server.send(event(n));
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(reads()).toBeGreaterThanOrEqual(4);
    expect(reads()).toBeLessThanOrEqual(5);
  });

  test("are read once more when something happens while they are read", async () => {
    const { server, reads, slow } = await openQuery();
    slow(true);
    server.send(event(1));
    await vi.advanceTimersByTimeAsync(400);
    server.send(event(2));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(reads()).toBe(2);
    slow(false);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reads()).toBe(3);
  });

  test("that failed while the server was away are read again once it is back, and the others are not", async () => {
    const { server, feed, away, reads, data } = await openQuery();
    feed.status.set("lost");
    feed.status.set("live");
    await vi.advanceTimersByTimeAsync(2_000);
    expect(reads()).toBe(1);
    away.isAway = true;
    server.send(event(1));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(reads()).toBe(2);
    away.isAway = false;
    feed.status.set("lost");
    feed.status.set("live");
    await vi.advanceTimersByTimeAsync(2_000);
    expect([reads(), data()]).toEqual([3, 3]);
  });

  test("are not read for what does not concern them, and are patched at once", async () => {
    const { server, reads, data } = await openQuery();
    server.send(event(1, { lane: "other" }), event(2, { lane: "other", taskId: "patched" }));
    await vi.advanceTimersByTimeAsync(100);
    expect(data()).toBe(100);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(reads()).toBe(1);
  });

  test("that are not on screen are out of date after an event that concerns them, and are not read before they are shown", async () => {
    const { server, leave, isStale, reads } = await openQuery();
    leave();
    server.send(event(1, { lane: "other" }));
    await vi.advanceTimersByTimeAsync(100);
    expect(isStale()).toBe(false);
    server.send(event(2));
    await vi.advanceTimersByTimeAsync(1_000);
    expect([isStale(), reads()]).toEqual([true, 1]);
  });

  test("that are held are patched and not read, whatever happens, also when that is not known", async () => {
    const { server, live, held, isStale, reads, data } = await openQuery();
    // What was due before does not move them either.
    server.send(event(1));
    await vi.advanceTimersByTimeAsync(100);
    held.isHeld = true;
    await vi.advanceTimersByTimeAsync(2_000);
    expect([reads(), isStale()]).toEqual([1, true]);
    server.send(event(2, { taskId: "patched" }));
    await vi.advanceTimersByTimeAsync(2_000);
    expect([reads(), data()]).toEqual([1, 100]);
    // A busy server.
    server.send(...Array.from({ length: 250 }, (_, n) => event(n + 3)));
    await vi.advanceTimersByTimeAsync(5_000);
    live.togglePaused();
    live.togglePaused();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(reads()).toBe(1);
    held.isHeld = false;
    server.send(event(300));
    await vi.advanceTimersByTimeAsync(2_000);
    expect([reads(), isStale()]).toEqual([2, false]);
  });

  test("stay as they are while paused, and catch up after", async () => {
    const { server, live, reads } = await openQuery();
    live.togglePaused();
    server.send(event(1), event(2, { taskId: "patched" }));
    await vi.advanceTimersByTimeAsync(5_000);
    expect([live.paused.get(), reads()]).toEqual([true, 1]);
    live.togglePaused();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reads()).toBe(2);
  });
});

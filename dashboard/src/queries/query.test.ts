import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { keepEqual } from "./keep-equal.ts";
import type { Observer } from "./query.ts";
import { QueryClient } from "./query-client.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A server that answers when the test says so. */
function newServer() {
  const asked: { signal: AbortSignal; answer: (value: unknown) => void; refuse: (error: Error) => void }[] =
    [];
  const read: Observer<unknown>["read"] = ({ signal }) =>
    new Promise((answer, refuse) => asked.push({ signal, answer, refuse }));
  return { asked, observer: { read, isEnabled: true, meta: undefined } };
}

const settled = () => vi.advanceTimersByTimeAsync(0);

describe("a query", () => {
  test("is one request for all that show it, and knows its data or its error", async () => {
    const errors: unknown[] = [];
    const query = new QueryClient((error) => errors.push(error)).query(["a"]);
    const { asked, observer } = newServer();
    const seen: unknown[] = [];
    query.subscribe(() => seen.push(query.state.isFetching), { current: observer });
    query.subscribe(() => {}, { current: observer });
    void query.fetch();
    void query.fetch();
    expect(asked).toHaveLength(1);
    asked[0]?.answer({ n: 1 });
    await settled();
    expect(query.state).toMatchObject({ data: { n: 1 }, error: null, isFetching: false });
    void query.refetch();
    asked[1]?.refuse(new Error("gone"));
    await settled();
    // What was read before stays.
    expect(query.state).toMatchObject({ data: { n: 1 }, error: new Error("gone") });
    expect(errors).toEqual([new Error("gone")]);
    expect(seen).toEqual([true, false, true, false]);
  });

  test("begins again when it is invalidated, and ignores the response to the older request", async () => {
    const client = new QueryClient();
    const query = client.query(["a", 1]);
    const { asked, observer } = newServer();
    query.subscribe(() => {}, { current: observer });
    void query.fetch();
    asked[0]?.answer("first");
    await settled();
    client.invalidateQueries({ queryKey: ["a"] });
    client.invalidateQueries({ queryKey: ["a"] });
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([false, true, false]);
    asked[1]?.answer("late");
    asked[2]?.answer("last");
    await settled();
    expect(query.state).toMatchObject({ data: "last", isInvalidated: false });
    client.invalidateQueries({ queryKey: ["b"] });
    expect(asked).toHaveLength(3);
  });

  test("that is invalidated during its first read shows that, and is read once more", async () => {
    const client = new QueryClient();
    const query = client.query(["a"]);
    const { asked, observer } = newServer();
    query.subscribe(() => {}, { current: observer });
    void query.fetch();
    client.invalidateQueries({ queryKey: ["a"] });
    client.invalidateQueries({ queryKey: ["a"] });
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([false]);
    asked[0]?.answer("before the change");
    await settled();
    expect(query.state).toMatchObject({ data: "before the change", isFetching: true });
    asked[1]?.answer("after it");
    await settled();
    expect(query.state).toMatchObject({ data: "after it", isFetching: false, isInvalidated: false });
    expect(asked).toHaveLength(2);
  });

  test("is aborted when nothing shows it, kept for some minutes, and then forgotten", async () => {
    const client = new QueryClient();
    const query = client.query(["a"]);
    const { asked, observer } = newServer();
    const leave = query.subscribe(() => {}, { current: observer });
    void query.fetch();
    leave();
    expect(asked[0]?.signal.aborted).toBe(true);
    expect(query.state.isFetching).toBe(false);
    await vi.advanceTimersByTimeAsync(4 * 60_000);
    expect(client.query(["a"])).toBe(query);
    await vi.advanceTimersByTimeAsync(2 * 60_000);
    expect(client.query(["a"])).not.toBe(query);
  });

  test("that is off the screen or disabled is only marked", async () => {
    const client = new QueryClient();
    const query = client.query(["a"]);
    const { asked, observer } = newServer();
    query.subscribe(() => {}, { current: { ...observer, isEnabled: false } });
    client.setQueryData(["a"], "known");
    expect(query.isStale(1_000)).toBe(false);
    client.invalidateQueries({ queryKey: ["a"] });
    expect([asked.length, query.isActive(), query.isStale(1_000)]).toEqual([0, false, true]);
    // A button asks all the same.
    void query.refetch();
    expect(asked).toHaveLength(1);
  });

  test("has the same key whatever the order of its members", () => {
    const client = new QueryClient();
    expect(client.query(["a", { x: 1, y: 2 }])).toBe(client.query(["a", { y: 2, x: 1 }]));
    expect(client.query(["a", { x: 1 }])).not.toBe(client.query(["a", { x: 2 }]));
  });
});

test("equal parts of a response keep their identity", () => {
  const before = { list: [{ id: 1 }, { id: 2, tags: ["a"] }], total: 2 };
  expect(keepEqual(before, structuredClone(before))).toBe(before);
  const now = keepEqual(before, { list: [{ id: 1 }, { id: 2, tags: ["b"] }], total: 2 });
  expect(now).toEqual({ list: [{ id: 1 }, { id: 2, tags: ["b"] }], total: 2 });
  expect(now.list[0]).toBe(before.list[0]);
  expect(now.list[1]).not.toBe(before.list[1]);
  expect(keepEqual({ a: undefined }, { b: undefined })).toEqual({ b: undefined });
  expect(keepEqual([1, 2, 3], [1, 2])).toEqual([1, 2]);
  expect(keepEqual(null, { a: 1 })).toEqual({ a: 1 });
});

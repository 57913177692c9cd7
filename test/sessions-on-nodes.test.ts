import { afterAll, expect, onTestFinished, test } from "vitest";
import { createRota, type Rota, type RotaEvent } from "../src/index.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import { Latch, until } from "../src/testing/index.ts";
import { prepareDatabaseCopies } from "./postgres/database-copies.ts";

const KEY = "user:42";

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
afterAll(() => copies.drop());

interface Message {
  readonly node: number;
  readonly message: string;
  readonly signal: AbortSignal;
  readonly latch: Latch;
}

/** Two nodes that share one PostgreSQL, whose agent `a` returns when the test lets it. */
async function openNodes({ maxConcurrent = 1 } = {}) {
  const { url } = await copies.copy();
  const messages: Message[] = [];
  const open = async (node: number): Promise<Rota> => {
    const rota = await createRota({ storage: url, sessions: { debounceMs: 0, maxConcurrent } });
    onTestFinished(() => rota.stop({ graceMs: 0 }));
    rota.agent("a", async ({ message = "" }, { signal }) => {
      const latch = new Latch();
      messages.push({ node, message, signal, latch });
      const stopped = new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      await Promise.race([latch.opened, stopped]);
      return `${message}!`;
    });
    await rota.start();
    return rota;
  };
  const nodes = [await open(0), await open(1)] as const;
  return {
    nodes,
    messages,
    untilMessages: (count: number) => until(() => messages.length === count, `${count} messages`),
  };
}

test("messages sent to several nodes run one at a time, in the order in which they were accepted", async () => {
  const { nodes, messages, untilMessages } = await openNodes();
  const sent = [];
  for (let n = 0; n < 10; n++) {
    sent.push(await (nodes[n % 2] as Rota).sessions.send(KEY, { message: `${n}`, agentId: "a" }));
  }
  for (let n = 0; n < 10; n++) {
    await untilMessages(n + 1);
    expect(await nodes[0].sessions.get(KEY)).toMatchObject({ running: 1, queued: 9 - n });
    messages[n]?.latch.open();
  }
  for (const { taskId = "" } of sent)
    expect(await nodes[1].tasks.wait(taskId)).toMatchObject({ state: "done" });
  expect(messages.map(({ message }) => Number(message))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test.each(["/stop", "/stopall", "interrupt", "reset"])(
  "%s, sent to either node, aborts what runs on the other, and the next one starts",
  async (how) => {
    const { nodes, messages, untilMessages } = await openNodes();
    const seen: RotaEvent[] = [];
    nodes[0].onEvent((event) => void seen.push(event));
    const { taskId = "" } = await nodes[0].sessions.send(KEY, { message: "one", agentId: "a" });
    await untilMessages(1);
    const other = nodes[messages[0]?.node === 0 ? 1 : 0];
    if (how === "reset") await other.sessions.reset(KEY);
    else if (how !== "interrupt") await other.sessions.send(KEY, { message: how });
    const mode = how === "interrupt" ? "interrupt" : "queue";
    await other.sessions.send(KEY, { message: "two", agentId: "a", mode });
    await until(() => messages[0]?.signal.aborted === true, "the abort");
    await untilMessages(2);
    const error = { interrupt: "interrupted", reset: "session_reset" }[how] ?? "stopped";
    expect(await nodes[0].tasks.get(taskId)).toMatchObject({ state: "cancelled", error });
    await until(() => seen.some(({ type }) => type === "task.cancelled"), "the event");
    expect(seen.find(({ type }) => type === "task.cancelled")).toMatchObject({
      taskId,
      sessionKey: KEY,
      error,
      result: "",
    });
  },
);

test("a change of what runs at once on one node applies to the other, too", async () => {
  const { nodes, messages, untilMessages } = await openNodes();
  for (const message of ["one", "two", "three"]) {
    await nodes[0].sessions.send(KEY, { message, agentId: "a" });
  }
  await untilMessages(1);
  await nodes[1].sessions.update(KEY, { maxConcurrent: 3 });
  await untilMessages(3);
  expect(messages.map(({ message }) => message).sort()).toEqual(["one", "three", "two"]);
});

test("every caller gets the result, wherever the task ran", async () => {
  const { nodes, messages, untilMessages } = await openNodes({ maxConcurrent: 2 });
  const asked = nodes.map((rota, n) => rota.sessions.ask(KEY, { message: `${n}`, agentId: "a" }));
  await untilMessages(2);
  for (const { latch } of messages) latch.open();
  expect(await Promise.all(asked)).toMatchObject([{ result: "0!" }, { result: "1!" }]);
});

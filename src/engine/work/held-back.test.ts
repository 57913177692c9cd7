import { describe, expect, test } from "vitest";
import { Held } from "../../../test/support/held.ts";
import { openTestRota } from "../../../test/support/rota.ts";
import type { Rota } from "../../interface/rota.ts";
import { settle } from "../../testing/manual-clock.ts";

/** Two tasks of which the second, in another lane and of another agent, may start once the first is over. */
const WAYS: [what: string, submit: (rota: Rota, first: object) => Promise<string[]>][] = [
  [
    "a session",
    async (rota, first) => {
      const one = await rota.tasks.submit({ sessionKey: "s", message: "first", ...first });
      const two = await rota.tasks.submit({ sessionKey: "s", agentId: "b", lane: "team", message: "second" });
      return [one.taskId, two.taskId];
    },
  ],
  [
    "a batch",
    async (rota, first) => {
      const second = { agentId: "b", lane: "team", message: "second" };
      const tasks = [{ message: "first", ...first }, second];
      return [...(await rota.tasks.submitBatch({ parallelism: 1, tasks })).taskIds];
    },
  ],
];

/** Ends the first one. Time moves only where the test moves it, so that no service polls. */
const ENDS: [how: string, first: object, end: (params: EndParams) => Promise<unknown>][] = [
  ["is done", {}, ({ held }) => held.end()],
  ["fails", { agentId: "failing" }, ({ held }) => held.end()],
  ["is cancelled while it runs", {}, ({ rota, id }) => rota.tasks.cancel(id)],
  ["is cleared out of its lane", { lane: "paused" }, ({ rota }) => rota.lanes.clear("paused")],
  ["times out", { timeout: 1_000 }, ({ advance }) => advance(1_000)],
  [
    "expires while it waits",
    { lane: "paused", deadline: "2001-01-01T00:00:00Z" },
    ({ advance }) => advance(1_000),
  ],
];

interface EndParams {
  readonly rota: Rota;
  readonly held: Held;
  readonly id: string;
  readonly advance: (ms: number) => Promise<void>;
}

describe.each(WAYS)("what %s holds back starts, in whichever lane,", (_what, submit) => {
  test.each(ENDS)("at once when the one before it %s", async (_how, first, end) => {
    const held = new Held();
    const { rota, clock } = await openTestRota({
      options: { lanes: { paused: 0 }, executors: { message: held.executor } },
    });
    rota.agent("failing", async () => {
      await held.executor();
      throw new Error("no");
    });
    await rota.start();
    const soon = new Date(clock.now() + 1_000).toISOString();
    const [id = "", next = ""] = await submit(
      rota,
      "deadline" in first ? { ...first, deadline: soon } : first,
    );
    await settle();
    expect((await rota.tasks.get(next)).state).toBe("queued");
    await end({ rota, held, id, advance: (ms) => clock.advance(ms) });
    await settle();
    expect((await rota.tasks.get(next)).state).toBe("running");
  });
});

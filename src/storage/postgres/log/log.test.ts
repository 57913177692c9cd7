import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../../../../test/postgres/database.ts";
import {
  allEvents,
  drain,
  type Node,
  openNodes,
  prepareDatabases,
  submit,
  tasksOf,
} from "../../../../test/postgres/several-nodes.ts";
import { LANE, TENANT } from "../../conformance/world.ts";
import type { StoredEvent } from "../../storage.ts";

prepareDatabases();

describe("what was logged", () => {
  test("leaves nothing behind, though nodes write it while its tasks are deleted", async () => {
    const { nodes, first, admin } = await openNodes(3);
    const tasks = await submit(first, tasksOf(3, 60));
    const lines = [{ at: 1, level: "info", text: "x" }] as const;
    const write = async ({ storage }: Node, attempt: number) => {
      for (let lastN = 1; lastN <= 20; lastN += 1) {
        const pieces = tasks.map(({ seq }) => ({ taskSeq: seq, attempt, lastN, bytes: 1, lines }));
        await storage.logs.append({ pieces });
      }
    };
    const rows = async () =>
      (await admin.query("select count(*)::integer as rows from rota.task_log")).rows[0];
    await write(nodes[0] as Node, 1);
    expect(await rows()).toEqual({ rows: 60 * 20 });
    await first.tasks.cancel({ tenant: TENANT, ids: tasks.map(({ id }) => id), error: null });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const prune = async () => {
      for (let more = true; more; ) {
        ({ more } = await first.tasks.prune({ retentionMs: 0, rejectedMax: 0, limit: 7 }));
      }
    };
    await Promise.all([write(nodes[1] as Node, 2), write(nodes[2] as Node, 3), prune()]);
    await prune();
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({});
    expect(await rows()).toEqual({ rows: 0 });
  });
});

describe("readers of the log", () => {
  test("miss nothing while four nodes write, and see at once every write that has returned", async () => {
    const { nodes, first } = await openNodes(6);
    const readers = nodes.slice(4);
    const other = await openWriterElsewhere();
    let writing = true;
    const seen = readers.map(async ({ storage }) => {
      const mine: StoredEvent[] = [];
      for (let wasWriting = true; wasWriting; ) {
        wasWriting = writing;
        for (let page = 1; page > 0; ) {
          const { events } = await storage.events.read({
            after: mine.at(-1)?.seq ?? 0,
            limit: 50,
            bytesMax: 1e9,
          });
          mine.push(...events);
          page = events.length;
        }
      }
      return mine;
    });
    await Promise.all(
      nodes.slice(0, 4).map(async (node, index) => {
        for (let round = 0; round < 15; round += 1) {
          const { newest } = await node.storage.events.range();
          const [task] = await submit(node.storage, tasksOf(3, 3));
          const reader = readers[index % 2] as Node;
          const { events: read } = await reader.storage.events.read({
            after: newest,
            limit: 100_000,
            bytesMax: 1e9,
          });
          expect(read.map(({ taskId }) => taskId)).toContain(task?.id);
          // A step that fails takes numbers with it: holes in the log are no gaps.
          if (round % 5 === 0)
            await expect(submit(node.storage, [{}, { lane: "nowhere" }])).rejects.toThrow();
          await drain(node, [LANE], 5);
        }
      }),
    );
    writing = false;
    const log = await allEvents(first);
    for (const mine of await Promise.all(seen)) expect(mine).toEqual(log);
    await other.end();
  });

  /** Holds a transaction open that has written, in another database of the same server. */
  async function openWriterElsewhere(): Promise<Client> {
    const database = await createTestDatabase();
    const client = new Client({ connectionString: database.url });
    client.on("error", () => {});
    await client.connect();
    onTestFinished(() => database.drop());
    await client.query("create table written (id integer)");
    await client.query("begin");
    await client.query("insert into written values (1)");
    return client;
  }
});

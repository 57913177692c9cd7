import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../../test/postgres/database.ts";
import {
  allEvents,
  drain,
  type Node,
  openNodes,
  prepareDatabases,
  submit,
  tasksOf,
} from "../../test/postgres/several-nodes.ts";
import { LANE } from "./conformance/world.ts";
import type { StoredEvent } from "./storage.ts";

prepareDatabases();

describe("readers of the log", () => {
  test("miss nothing while four nodes write, and see at once what was answered", async () => {
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
          const { events: told } = await reader.storage.events.read({
            after: newest,
            limit: 100_000,
            bytesMax: 1e9,
          });
          expect(told.map(({ taskId }) => taskId)).toContain(task?.id);
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

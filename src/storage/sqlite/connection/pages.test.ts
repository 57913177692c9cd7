import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { SteppedClock } from "../../conformance/connection/clock.ts";
import { LANE, NODE, newTask, ROOMY } from "../../conformance/world.ts";
import { openSqlite } from "./open.ts";

/** A page in the write-ahead log, with its header. */
const FRAME_BYTES = 4096 + 24;

/**
 * The task, its id, the list of queued tasks, the event and its index, the agent queue, its tenant and lane, and a tally. Indexes
 * of fairness are not among them: a task that only waits changes no order.
 */
const PAGES_OF_SUBMIT = 9;

test("a submit writes no page that it does not change", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rota-pages-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "rota.db");
  const storage = await openSqlite({ path, clock: new SteppedClock() });
  onTestFinished(() => storage.close());
  await storage.lanes.configure({
    lanes: [{ name: LANE, total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 }],
  });
  await storage.nodes.register({ node: NODE });
  const pagesOf = async (id: string) => {
    const before = statSync(`${path}-wal`).size;
    await storage.tasks.insert({ tasks: [newTask({ id })], limits: ROOMY });
    return (statSync(`${path}-wal`).size - before) / FRAME_BYTES;
  };
  await pagesOf("first of its agent");
  expect(await pagesOf("second")).toBe(PAGES_OF_SUBMIT);
});

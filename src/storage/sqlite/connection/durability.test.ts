import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { settle } from "../../../testing/manual-clock.ts";
import { Latch } from "../../../testing/signals.ts";
import { SteppedClock } from "../../conformance/connection/clock.ts";
import { LANE, NODE, newTask, ROOMY, TENANT } from "../../conformance/world.ts";
import type { Storage } from "../../storage.ts";
import { openSqlite } from "./open.ts";

const OTHER = "south";

type Operations = Readonly<Record<string, (storage: Storage) => Promise<unknown>>>;

/** Those of which the contract says that they need not wait for the disk. */
const NOT_WAITING: Operations = {
  "tasks.finishAndClaim": ({ tasks }) =>
    tasks.finishAndClaim({ node: NODE, finishes: [], progress: [], claims: [{ lane: LANE, limit: 1 }] }),
  "tasks.claimAlone": ({ tasks }) => tasks.claimAlone({ node: NODE, lanes: [LANE] }),
  "tasks.promoteDue": ({ tasks }) => tasks.promoteDue({ limit: 10 }),
  "tasks.prune": ({ tasks }) => tasks.prune({ retentionMs: 1, rejectedMax: 1, limit: 10 }),
  "nodes.register": ({ nodes }) => nodes.register({ node: OTHER }),
  "nodes.setAbilities": ({ nodes }) =>
    nodes.setAbilities({ node: OTHER, abilities: { agents: new Map([["a", true]]), kinds: [] } }),
  "nodes.setSlots": ({ nodes }) => nodes.setSlots({ node: OTHER, slots: { [LANE]: 1 } }),
  "nodes.heartbeat": ({ nodes }) => nodes.heartbeat({ node: NODE }),
  "nodes.markDead": ({ nodes }) => nodes.markDead({ node: OTHER, beat: 0 }),
  "nodes.remove": ({ nodes }) => nodes.remove({ node: OTHER }),
  "agents.forget": ({ agents }) => agents.forget(),
  "keys.touch": ({ keys }) => keys.touch({ uses: [{ id: "key", at: 1 }] }),
  "bulks.claim": ({ bulks }) => bulks.claim({ leaseMs: 1 }),
  "rollups.advance": ({ rollups }) => rollups.advance({ limit: 10 }),
  "rollups.prune": ({ rollups }) => rollups.prune({ limit: 10 }),
  "audit.prune": ({ audit }) => audit.prune({ retentionMs: 1, limit: 10 }),
  "counters.recountOne": ({ counters }) => counters.recountOne({ random: 0 }),
};

/** Some of the others, and the reads that a client sees. */
const WAITING: Operations = {
  "tasks.insert": ({ tasks }) => tasks.insert({ tasks: [newTask()], limits: ROOMY }),
  "tasks.cancel": ({ tasks }) => tasks.cancel({ tenant: TENANT, ids: ["a"], error: null }),
  "tasks.expire": ({ tasks }) => tasks.expire({ limit: 10 }),
  "tasks.rescue": ({ tasks }) => tasks.rescue({ node: OTHER, limit: 10 }),
  "tasks.release": ({ tasks }) => tasks.release({ limit: 10 }),
  "agents.configure": ({ agents }) => agents.configure({ tenant: TENANT, agent: "a", maxInflight: 1 }),
  "keys.delete": ({ keys }) => keys.delete({ tenant: TENANT, id: "key" }),
  "bulks.abort": ({ bulks }) => bulks.abort({ tenant: TENANT, id: "bulk" }),
  "tasks.get": ({ tasks }) => tasks.get({ tenant: TENANT, id: "a" }),
  "events.read": ({ events }) => events.read({ after: 0, limit: 10, bytesMax: 1e9 }),
  "nodes.details": ({ nodes }) => nodes.details(),
};

test("only the operations that need not wait for the disk return before it has what they wrote", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rota-durability-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const disk = new Latch();
  let isSlow = false;
  const storage = await openSqlite({
    path: join(folder, "rota.db"),
    clock: new SteppedClock(),
    flushWal: {
      inThreadPool: async () => {
        if (isSlow) await disk.opened;
      },
      inThisThread: () => expect.unreachable("No flush was fast before."),
    },
  });
  onTestFinished(() => storage.close());
  await storage.lanes.configure({
    lanes: [{ name: LANE, total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 }],
  });
  await storage.nodes.register({ node: NODE });
  await storage.tasks.insert({ tasks: [newTask({ id: "a" }), newTask({ id: "b" })], limits: ROOMY });

  isSlow = true;
  const returned: string[] = [];
  const calls = [...Object.entries(NOT_WAITING), ...Object.entries(WAITING)].map(async ([name, call]) => {
    await call(storage);
    returned.push(name);
  });
  await settle();
  expect(returned.toSorted()).toEqual(Object.keys(NOT_WAITING).toSorted());
  disk.open();
  await Promise.all(calls);
});

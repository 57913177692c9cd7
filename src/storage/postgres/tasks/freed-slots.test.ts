import { expect, test } from "vitest";
import {
  done,
  openNodes,
  prepareDatabases,
  signalsArrived,
  submit,
} from "../../../../test/postgres/several-nodes.ts";
import { customSpec, LANE, newTask, OTHER_LANE, ROOMY, TENANT } from "../../conformance/world.ts";
import type { NewTask, Storage, StorageSignal } from "../../storage.ts";

prepareDatabases();

/** What runs on one node, and what another node can only start once that has ended. */
interface Case {
  readonly limit?: (storage: Storage, nodes: readonly string[]) => Promise<unknown>;
  /** The first of them runs. */
  readonly tasks: readonly Partial<NewTask>[];
  readonly batches?: Parameters<Storage["tasks"]["insert"]>[0]["batches"];
}

const UNBOUNDED = {
  total: null,
  perAgent: null,
  perTenant: null,
  strategy: "fair-fifo",
  agingMs: 0,
} as const;
const NO_LIMITS = {
  maxQueued: null,
  maxInflight: null,
  maxSchedules: null,
  maxSessions: null,
  maxStreams: null,
  maxAgents: null,
  maxStoredBytes: null,
};

const message: NewTask["spec"] = { ...customSpec({}), work: { kind: "message", message: "hello" } };
const elsewhere = { id: "second", lane: OTHER_LANE };

function limitLane(bounds: { total: number } | { perAgent: number } | { perTenant: number }) {
  return (storage: Storage) => storage.lanes.configure({ lanes: [{ name: LANE, ...UNBOUNDED, ...bounds }] });
}

/** The first node executes only tasks of kind custom, the second only messages. */
async function differ(storage: Storage, [first = "", second = ""]: readonly string[]): Promise<void> {
  const abilities = (kind: "custom" | "message") => ({ agents: new Map(), kinds: [kind] });
  await storage.nodes.setAbilities({ node: first, abilities: abilities("custom") });
  await storage.nodes.setAbilities({ node: second, abilities: abilities("message") });
}

const CASES: Readonly<Record<string, Case>> = {
  "the total of a lane": {
    limit: limitLane({ total: 1 }),
    tasks: [{ id: "first" }, { id: "second", agent: "other", tenant: "other" }],
  },
  "the total of a lane, between nodes with different abilities": {
    limit: async (storage, nodes) => {
      await differ(storage, nodes);
      await limitLane({ total: 1 })(storage);
    },
    tasks: [{ id: "first" }, { id: "second", agent: "other", spec: message }],
  },
  "the tasks per agent of a lane": {
    limit: limitLane({ perAgent: 1 }),
    tasks: [{ id: "first" }, { id: "second" }],
  },
  "the tasks per agent of a lane, between nodes with different abilities": {
    limit: async (storage, nodes) => {
      await differ(storage, nodes);
      await limitLane({ perAgent: 1 })(storage);
    },
    tasks: [{ id: "first" }, { id: "second", spec: message }],
  },
  "the limit of an agent, over lanes": {
    limit: (storage) => storage.agents.configure({ tenant: TENANT, agent: "scout", maxInflight: 1 }),
    tasks: [{ id: "first" }, elsewhere],
  },
  "the limit of a tenant, over lanes": {
    limit: (storage) =>
      storage.tenants.create({ id: TENANT, name: TENANT, limits: { ...NO_LIMITS, maxInflight: 1 } }),
    tasks: [{ id: "first" }, { ...elsewhere, agent: "other" }],
  },
  "the share of a tenant in a lane": {
    limit: async (storage) => {
      for (const id of [TENANT, "other"]) await storage.tenants.create({ id, name: id, limits: NO_LIMITS });
      await limitLane({ perTenant: 1 })(storage);
    },
    tasks: [{ id: "first" }, { id: "second", agent: "other" }],
  },
  "a concurrency key, over lanes": {
    tasks: [
      { id: "first", concurrencyKey: "k" },
      { ...elsewhere, concurrencyKey: "k" },
    ],
  },
  "a session": {
    tasks: [
      { id: "first", session: { key: "s", maxConcurrent: 1 } },
      { id: "second", session: { key: "s", maxConcurrent: 1 } },
    ],
  },
  "a batch": {
    batches: [{ id: "b", tenant: TENANT, parallelism: 1, callbackUrl: null }],
    tasks: [
      { id: "first", batch: "b" },
      { id: "second", batch: "b", agent: "other" },
    ],
  },
  "a dependency": { tasks: [{ id: "first" }, { id: "second", dependsOn: ["first"] }] },
};

test.each(Object.entries(CASES))("%s: the end on one node wakes another", async (_limit, each) => {
  const { nodes, first } = await openNodes(2);
  await each.limit?.(
    first,
    nodes.map(({ node }) => node),
  );
  const [one, two] = nodes;
  if (one === undefined || two === undefined) throw new Error("There are two nodes.");
  const [runs, ...waits] = each.tasks;
  const step = { finishes: [], progress: [] };
  const claims = [LANE, OTHER_LANE].map((lane) => ({ lane, limit: 9 }));
  const { batches = [] } = each;
  await first.tasks.insert({ tasks: [newTask(runs)], batches, limits: ROOMY });
  const { claimed } = await one.storage.tasks.finishAndClaim({ node: one.node, ...step, claims });
  expect(claimed.map(({ task }) => task.id)).toEqual(["first"]);
  await submit(first, waits);
  const claimOfTwo = async () => {
    const answer = await two.storage.tasks.finishAndClaim({ node: two.node, ...step, claims });
    return answer.claimed.map(({ task }) => task.id);
  };
  expect(await claimOfTwo()).toEqual([]);
  await signalsArrived(first, two.storage);
  const heard: string[] = [];
  two.storage.subscribe(({ kind }) => heard.push(kind));
  const finishes = claimed.map(({ task: { seq }, token }) => ({ seq, token, settlement: done }));
  await one.storage.tasks.finishAndClaim({ node: one.node, ...step, finishes, claims: [] });
  await expect.poll(() => heard).toContain("work");
  expect(await claimOfTwo()).toEqual(["second"]);
});

test("a task that its node returns to the queue wakes another node", async () => {
  const { nodes, first } = await openNodes(2);
  const [one, two] = nodes;
  if (one === undefined || two === undefined) throw new Error("There are two nodes.");
  await submit(first, [{ id: "returned" }]);
  const step = { finishes: [], progress: [], claims: [{ lane: LANE, limit: 1 }] };
  const { claimed } = await one.storage.tasks.finishAndClaim({ node: one.node, ...step });
  await signalsArrived(first, two.storage);
  const heard: string[] = [];
  two.storage.subscribe(({ kind }) => heard.push(kind));
  const settlement = { to: "queued", error: "not started: its node was stopping" } as const;
  const finishes = claimed.map(({ task: { seq }, token }) => ({ seq, token, settlement }));
  await one.storage.tasks.finishAndClaim({ node: one.node, ...step, finishes, claims: [] });
  await expect.poll(() => heard).toContain("work");
  const again = await two.storage.tasks.finishAndClaim({ node: two.node, ...step });
  expect(again.claimed.map(({ task }) => task.id)).toEqual(["returned"]);
});

test("an end names its lane, and none if its lane is full again", async () => {
  const { nodes, first } = await openNodes(2);
  const [one, two] = nodes;
  if (one === undefined || two === undefined) throw new Error("There are two nodes.");
  await limitLane({ total: 1 })(first);
  await submit(first, [{ id: "first" }, { id: "second" }, { id: "third" }]);
  const step = { node: one.node, progress: [] };
  const claims = [{ lane: LANE, limit: 1 }];
  let { claimed } = await one.storage.tasks.finishAndClaim({ ...step, finishes: [], claims });
  await signalsArrived(first, two.storage);
  const heard: StorageSignal[] = [];
  two.storage.subscribe((signal) => heard.push(signal));
  const finishes = () => claimed.map(({ task: { seq }, token }) => ({ seq, token, settlement: done }));
  ({ claimed } = await one.storage.tasks.finishAndClaim({ ...step, finishes: finishes(), claims }));
  await expect.poll(() => heard.map(({ kind }) => kind)).toContain("events");
  expect(heard.map(({ kind }) => kind)).not.toContain("work");
  await one.storage.tasks.finishAndClaim({ ...step, finishes: finishes(), claims: [] });
  await expect.poll(() => heard).toContainEqual({ kind: "work", lanes: [LANE] });
});

test("a new task wakes only its lane", async () => {
  const { nodes, first } = await openNodes(2);
  const [, two] = nodes;
  if (two === undefined) throw new Error("There are two nodes.");
  await signalsArrived(first, two.storage);
  const heard: StorageSignal[] = [];
  two.storage.subscribe((signal) => heard.push(signal));
  await submit(first, [{ id: "first", lane: OTHER_LANE }]);
  await expect.poll(() => heard).toContainEqual({ kind: "work", lanes: [OTHER_LANE] });
});

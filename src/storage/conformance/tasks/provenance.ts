import { describe, expect, test } from "vitest";
import type { EnclosingTask, Provenance } from "../../../model/provenance.ts";
import type { ListTasksParams, NewTask } from "../../storage.ts";
import { create } from "../schedules/schedule-world.ts";
import { UNBOUNDED } from "../tenants/share-out.ts";
import { customSpec, NODE, newTask, type OpenWorld, only, TENANT, type World } from "../world.ts";

const CREATED_BY = { keyId: "key_1", agentId: "research", via: "mcp", client: "a client/1.0 ü" } as const;

/** Who made tasks, schedules and audit entries, and which tasks belong to one tree. */
export function describeProvenance(open: OpenWorld): void {
  describe("provenance", () => {
    function within(taskId: string, rootTaskId = taskId, depth = 0): Pick<NewTask, "spec"> {
      const enclosing: EnclosingTask = { taskId, rootTaskId, depth };
      return { spec: { ...customSpec({}), createdBy: CREATED_BY, within: enclosing } };
    }

    async function listIds(world: World, filter: Partial<ListTasksParams>): Promise<string> {
      const { tasks } = await world.storage.tasks.list({ tenant: TENANT, limit: 100, ...filter });
      return tasks.map(({ id }) => id).join(" ");
    }

    async function growTree(world: World): Promise<void> {
      await world.submit({ id: "root" }, { id: "other" });
      await world.submit({ id: "child", ...within("root") }, { id: "stranger", ...within("other") });
      await world.submit({ id: "grandchild", agent: "b", ...within("child", "root", 1) });
    }

    test("of a task is stored with it, and claimed with it", async () => {
      const world = await open();
      const { spec } = within("root", "root", 3);
      await world.submit({ id: "child", spec });
      expect((await world.task("child")).spec).toEqual(spec);
      expect(only(await world.claim()).task.spec).toEqual(spec);
      expect((await world.task("child")).spec).toEqual(spec);
    });

    test("lists the tasks below a task, not the task itself, in every order and with other filters", async () => {
      const world = await open();
      await growTree(world);
      expect(await listIds(world, { root: "root" })).toBe("grandchild child");
      expect(await listIds(world, { root: "root", order: "oldest" })).toBe("child grandchild");
      expect(await listIds(world, { root: "root", agent: "b" })).toBe("grandchild");
      expect(await listIds(world, { root: "root", states: ["running"] })).toBe("");
      expect(await listIds(world, { root: "root", tenant: "another" })).toBe("");
      expect(await listIds(world, { root: "child" })).toBe("");
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["child", "stranger"], error: null });
      expect(await listIds(world, { root: "root", order: "completed" })).toBe("child");
      const { rows } = await world.storage.tasks.listRows({ tenant: TENANT, limit: 100, root: "root" });
      expect(rows.map(({ id }) => id)).toEqual(["grandchild", "child"]);
    });

    test("lists the tasks below a task page by page", async () => {
      const world = await open();
      await growTree(world);
      const first = await world.storage.tasks.list({ tenant: TENANT, root: "root", limit: 1 });
      expect(first.tasks.map(({ id }) => id)).toEqual(["grandchild"]);
      const cursor = first.nextCursor as number;
      const second = await world.storage.tasks.list({ tenant: TENANT, root: "root", limit: 1, cursor });
      expect([second.tasks.map(({ id }) => id), second.nextCursor]).toEqual([["child"], null]);
    });

    test("lists messages, tasks of batches and rejected tasks below a task, too", async () => {
      const world = await open();
      const session = { key: "s", maxConcurrent: 1 };
      await world.storage.sessions.send({
        task: newTask({ id: "said", origin: "message", session, ...within("root") }),
        mode: null,
        maxConcurrent: null,
        maxSessions: null,
        defaults: { mode: "queue", cap: 10, drop: "old", debounceMs: 0 },
      });
      await world.storage.tasks.insert({
        tasks: [newTask({ id: "in batch", batch: "b1", ...within("root") })],
        batches: [{ id: "b1", tenant: TENANT, parallelism: null, callbackUrl: null }],
        limits: { maxQueueSize: 1, maxQueueSizeTotal: 100, maxPerAgent: 100 },
      });
      await world.storage.tasks.insert({
        tasks: [newTask({ id: "refused", ...within("root") })],
        limits: { maxQueueSize: 1, maxQueueSizeTotal: 100, maxPerAgent: 100 },
      });
      expect((await world.task("refused")).state).toBe("rejected");
      expect(await listIds(world, { root: "root" })).toBe("refused in batch said");
    });

    test("of a schedule is stored with it, and an edit keeps it", async () => {
      const world = await open();
      const provenance: Provenance = {
        createdBy: CREATED_BY,
        within: { taskId: "tsk_2", rootTaskId: "tsk_1", depth: 1 },
      };
      const made = await create(world, { provenance });
      expect(made.provenance).toEqual(provenance);
      const { id, revision } = made;
      const changes = { name: "new" };
      const edited = await world.storage.schedules.update({ tenant: TENANT, id, revision, changes });
      expect(edited?.provenance).toEqual(provenance);
      expect((await create(world, {})).provenance).toBeNull();
    });

    test("of an audit entry is stored with it, without names once its tenant is gone", async () => {
      const { storage } = await open();
      const entry = (number: number, tenant: string) => ({
        ...{ at: 1, tenant, keyId: "key_1", route: "POST /tasks", subject: null, subjectDigest: null },
        ...{ subjectSalt: null, address: null, status: null, count: 1 },
        ...{ chain: NODE, number, previousHash: "", hash: "h", provenance },
      });
      const provenance = JSON.stringify({ createdBy: CREATED_BY, within: null });
      await storage.tenants.create({ id: "ten_1", name: "one", limits: UNBOUNDED });
      await storage.audit.append({ entries: [entry(1, "ten_1")] });
      const stored = async (tenant: string) =>
        (await storage.audit.list({ tenant, limit: 1 })).entries.map((each) =>
          JSON.parse(each.provenance ?? ""),
        );
      const whole = { createdBy: CREATED_BY, within: null };
      expect(await stored("ten_1")).toEqual([whole]);
      const [read] = await storage.audit.readChain({ chain: NODE, after: 0, limit: 1 });
      expect(read?.provenance).toBe(provenance);
      for (let more = true; more; ) {
        const deleted = await storage.tenants.delete({ id: "ten_1", limit: 100 });
        more = "more" in deleted && deleted.more;
      }
      const anonymous = { ...whole, createdBy: { keyId: "key_1", agentId: null, via: "mcp" } };
      expect(await stored("ten_1")).toEqual([anonymous]);
      await storage.audit.append({ entries: [entry(2, "ten_2")] });
      expect(await stored("ten_2")).toEqual([anonymous]);
    });
  });
}

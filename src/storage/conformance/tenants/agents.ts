import { describe, expect, test } from "vitest";
import type { AgentRecord, StorageSignal } from "../../storage.ts";
import { type OpenWorld, TENANT } from "../world.ts";
import { UNBOUNDED } from "./share-out.ts";

function record(over: Partial<AgentRecord> = {}): AgentRecord {
  return { tenant: TENANT, agent: "scout", maxInflight: null, definition: { lane: "main" }, ...over };
}

export function describeAgents(open: OpenWorld): void {
  describe("the catalogue of agents", () => {
    test("keeps an agent as it was stored, once for each id", async () => {
      const { agents } = (await open()).storage;
      const scout = record({
        definition: { executor: { type: "http", url: "https://a.example/é\u2028" }, "": [null] },
      });
      expect(await agents.list()).toEqual([]);
      expect(await agents.create(scout)).toBe(true);
      expect(await agents.create(record({ definition: {} }))).toBe(false);
      expect(await agents.list()).toEqual([scout]);
    });

    test("lists by tenant and id", async () => {
      const { agents } = (await open()).storage;
      const names = [
        ["b", "x"],
        ["a", "y"],
        ["a", "B"],
        ["a", "a"],
      ] as const;
      for (const [tenant, agent] of names) await agents.create(record({ tenant, agent }));
      expect((await agents.list()).map(({ tenant, agent }) => tenant + agent)).toEqual([
        "aB",
        "aa",
        "ay",
        "bx",
      ]);
    });

    test("replaces and forgets only what is in it", async () => {
      const { agents } = (await open()).storage;
      expect(await agents.update(record())).toBe(false);
      expect(await agents.delete({ tenant: TENANT, agent: "scout" })).toBe(false);
      await agents.create(record());
      expect(await agents.update(record({ tenant: "other" }))).toBe(false);
      expect(await agents.update(record({ maxInflight: 3, definition: {} }))).toBe(true);
      expect(await agents.list()).toEqual([record({ maxInflight: 3, definition: {} })]);
      expect(await agents.delete({ tenant: TENANT, agent: "scout" })).toBe(true);
      expect(await agents.list()).toEqual([]);
    });

    test("returns what changed after what is known, each agent once and as it is now", async () => {
      const { agents } = (await open()).storage;
      const known = await agents.changes({ since: null, limit: 100 });
      expect(known).toMatchObject({ whole: true, agents: [], gone: [], more: false });
      await agents.create(record());
      await agents.create(record({ agent: "writer" }));
      await agents.update(record({ definition: { lane: "team" } }));
      await agents.create(record({ tenant: "other", agent: "gone" }));
      await agents.delete({ tenant: "other", agent: "gone" });
      const all = await agents.changes({ since: known.last, limit: 100 });
      expect(all).toMatchObject({ whole: false, gone: [{ tenant: "other", agent: "gone" }], more: false });
      expect(all.agents).toEqual([record({ agent: "writer" }), record({ definition: { lane: "team" } })]);
      expect(await agents.changes({ since: all.last, limit: 100 })).toEqual({
        whole: false,
        agents: [],
        gone: [],
        goneTenants: [],
        last: all.last,
        more: false,
      });
    });

    test("returns changes in slices", async () => {
      const { agents } = (await open()).storage;
      const { last } = await agents.changes({ since: null, limit: 1 });
      for (const agent of ["a", "b", "c"]) await agents.create(record({ agent }));
      const seen: string[] = [];
      for (let since = last, more = true; more; ) {
        const slice = await agents.changes({ since, limit: 2 });
        expect(slice.agents.length).toBeLessThanOrEqual(2);
        seen.push(...slice.agents.map(({ agent }) => agent));
        ({ last: since, more } = slice);
      }
      expect(seen).toEqual(["a", "b", "c"]);
    });

    test("returns all of it where a change is not known, and counts no mere limit as one", async () => {
      const { agents } = (await open()).storage;
      await agents.create(record());
      const { last } = await agents.changes({ since: null, limit: 100 });
      await agents.configure({ tenant: TENANT, agent: "bound", maxInflight: 2 });
      await agents.update(record({ maxInflight: 4 }));
      expect((await agents.changes({ since: last, limit: 100 })).agents).toEqual([]);
      // As after a restore: the number was assigned in the time that the restore undid.
      expect(await agents.changes({ since: last + 1, limit: 100 })).toEqual({
        whole: true,
        agents: [record({ maxInflight: 4 })],
        gone: [],
        goneTenants: [],
        last,
        more: false,
      });
    });

    test("returns that the agents of a deleted tenant are gone", async () => {
      const { agents, tenants } = (await open()).storage;
      await tenants.create({ id: "ten_1", name: "Acme", limits: UNBOUNDED });
      await agents.create(record({ tenant: "ten_1" }));
      const { last } = await agents.changes({ since: null, limit: 100 });
      await tenants.delete({ id: "ten_1", limit: 100 });
      expect(await agents.changes({ since: last, limit: 100 })).toMatchObject({
        agents: [],
        gone: [],
        goneTenants: ["ten_1"],
      });
    });

    test("does not list an agent that merely has a bound, and takes it in when asked to", async () => {
      const { agents } = (await open()).storage;
      await agents.configure({ tenant: TENANT, agent: "scout", maxInflight: 2 });
      expect(await agents.list()).toEqual([]);
      expect(await agents.create(record({ maxInflight: 5 }))).toBe(true);
      await agents.configure({ tenant: TENANT, agent: "scout", maxInflight: 7 });
      expect(await agents.list()).toEqual([record({ maxInflight: 7 })]);
    });

    test("returns which agents have a limit and are not in it", async () => {
      const { agents } = (await open()).storage;
      await agents.configure({ tenant: TENANT, agent: "scout", maxInflight: 2 });
      await agents.configure({ tenant: "another", agent: "b", maxInflight: 1 });
      await agents.configure({ tenant: "another", agent: "a", maxInflight: 1 });
      await agents.configure({ tenant: "another", agent: "free", maxInflight: null });
      await agents.create(record({ agent: "listed", maxInflight: 1 }));
      expect(await agents.bounded()).toEqual([
        { tenant: TENANT, agent: "scout" },
        { tenant: "another", agent: "a" },
        { tenant: "another", agent: "b" },
      ]);
      await agents.create(record({ maxInflight: 2 }));
      await agents.configure({ tenant: "another", agent: "a", maxInflight: null });
      expect(await agents.bounded()).toEqual([{ tenant: "another", agent: "b" }]);
    });

    test("bounds what runs with its entry, and frees it with that", async () => {
      const { storage, submit, claim } = await open();
      const task = { agent: "scout" };
      await submit(task, task, task, task);
      await storage.agents.create(record({ maxInflight: 1 }));
      expect(await claim({ limit: 9 })).toHaveLength(1);
      await storage.agents.update(record({ maxInflight: 2 }));
      expect(await claim({ limit: 9 })).toHaveLength(1);
      await storage.agents.delete({ tenant: TENANT, agent: "scout" });
      expect(await claim({ limit: 9 })).toHaveLength(2);
    });

    test("signals that it changed, and only then", async () => {
      const { storage } = await open();
      const heard: StorageSignal["kind"][] = [];
      storage.subscribe(({ kind }) => heard.push(kind));
      const changes = async () => heard.splice(0).filter((kind) => kind === "agents").length;
      await storage.agents.create(record());
      expect(await changes()).toBe(1);
      await storage.agents.create(record());
      await storage.agents.configure({ tenant: TENANT, agent: "scout", maxInflight: 1 });
      expect(await changes()).toBe(0);
      await storage.agents.update(record());
      await storage.agents.delete({ tenant: TENANT, agent: "scout" });
      expect(await changes()).toBe(2);
    });
  });
}

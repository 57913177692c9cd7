import { describe, expect, test } from "vitest";
import type { RotaApi } from "../../src/interface/rota.ts";
import { errorOf, type Open } from "./opened.ts";

export function describeKeys(open: Open): void {
  /** The methods for keys: over HTTP, with an admin key. */
  async function openAsAdmin() {
    const { api, withKey, ...rest } = await open({ start: false });
    const first = await api.keys.create({ role: "admin", name: "first" });
    return { ...rest, first, withKey, api: withKey(first.key) };
  }

  describe("keys", () => {
    test("are made, listed without themselves, and deleted", async () => {
      const { api, first } = await openAsAdmin();
      const made = await api.keys.create({ role: "agent", name: "scout's", agentId: "scout" });
      expect(made).toEqual({
        id: expect.stringMatching(/^key_/),
        key: expect.stringMatching(/^rota_[\w-]{43}$/),
      });
      const { keys, count } = await api.keys.list();
      expect([count, keys.map(({ id }) => id)]).toEqual([2, [first.id, made.id]]);
      expect(keys[1]).toEqual({
        id: made.id,
        name: "scout's",
        role: "agent",
        tenantId: "default",
        agentId: "scout",
        createdAt: expect.any(String),
      });
      expect(await api.keys.delete(made.id)).toEqual({ deleted: true });
      expect((await api.keys.list()).count).toBe(1);
      expect(await errorOf(api.keys.delete(made.id))).toMatchObject({
        code: "not_found",
        message: "key not found",
      });
    });

    test("belong to a tenant, which a caller of another tenant has to name", async () => {
      const { api } = await openAsAdmin();
      const { id: tenantId } = await api.tenants.create({ name: "acme" });
      const { id } = await api.keys.create({ role: "viewer", name: "theirs", tenantId });
      expect((await api.keys.list({ tenantId })).keys).toMatchObject([{ id, tenantId }]);
      expect((await api.keys.list()).keys.map((key) => key.id)).not.toContain(id);
      expect(await errorOf(api.keys.delete(id))).toMatchObject({ code: "not_found" });
      expect(await api.keys.delete(id, { tenantId })).toEqual({ deleted: true });
    });

    test("that cannot be are refused by name", async () => {
      const { api } = await openAsAdmin();
      const create = (input: unknown) =>
        errorOf(api.keys.create(input as Parameters<RotaApi["keys"]["create"]>[0]));
      expect(await create({ name: "x" })).toMatchObject({
        code: "invalid_field",
        details: { field: "role" },
      });
      expect(await create({ role: "viewer" })).toMatchObject({ details: { field: "name" } });
      expect(await create({ role: "viewer", name: "x", rol: 1 })).toMatchObject({
        message: "unknown field `rol`: did you mean `role`?",
      });
      expect(await create(undefined)).toMatchObject({ code: "invalid_field" });
      expect(await create({ role: "viewer", name: "x", tenantId: "nobody" })).toMatchObject({
        code: "not_found",
        message: "`tenantId`: tenant not found: write the id of an existing tenant",
        details: { field: "tenantId" },
      });
      expect((await api.keys.list()).count).toBe(1);
    });
  });

  describe("the role tenant-admin", () => {
    test("is made for a tenant, which has no admin keys", async () => {
      const { api } = await openAsAdmin();
      const { id: tenantId } = await api.tenants.create({ name: "acme" });
      const input = { role: "tenant-admin", name: "theirs", tenantId } as const;
      const { id } = await api.keys.create(input);
      expect((await api.keys.list({ tenantId })).keys).toMatchObject([{ id, role: "tenant-admin" }]);
      expect(await errorOf(api.keys.create({ ...input, role: "admin" }))).toMatchObject({
        code: "invalid_field",
        details: { field: "role" },
      });
    });
  });

  describe("the audit log", () => {
    test("of another tenant is read by its id", async () => {
      const { api, rota } = await openAsAdmin();
      await rota.audit.write({ tenantId: "ten_1", route: "POST /tasks", subject: "theirs" });
      expect((await api.audit.list({ tenantId: "ten_1" })).entries).toMatchObject([{ subject: "theirs" }]);
      expect(JSON.stringify(await api.audit.list())).not.toContain("theirs");
    });

    test("is read page by page, the newest first", async () => {
      const { api, rota, clock } = await openAsAdmin();
      const before = (await api.audit.list()).count;
      for (const subject of ["1", "2", "3"]) {
        await clock.advance(1_000);
        await rota.audit.write({ route: "POST /tasks", subject, keyId: "key_1" });
      }
      const first = await api.audit.list({ limit: 2, keyId: "key_1" });
      expect(first.entries).toEqual(
        ["3", "2"].map((subject) => ({
          at: expect.any(String),
          keyId: "key_1",
          route: "POST /tasks",
          subject,
        })),
      );
      const rest = await api.audit.list({ keyId: "key_1", cursor: first.nextCursor as string });
      expect([rest.count, rest.nextCursor]).toEqual([1, null]);
      expect((await api.audit.list({ since: clock.now() / 1_000 })).count).toBe(1);
      expect((await api.audit.list()).count).toBe(before + 3);
      expect(await errorOf(api.audit.list({ since: "then" }))).toMatchObject({ details: { field: "since" } });
    });
  });
}

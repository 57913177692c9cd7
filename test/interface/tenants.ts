import { describe, expect, test } from "vitest";
import { settle } from "../../src/testing/manual-clock.ts";
import { errorOf, type Open } from "./opened.ts";

const NONE = {
  maxQueued: null,
  maxInflight: null,
  maxSchedules: 1_000,
  maxSessions: 10_000,
  maxStreams: null,
  maxAgents: 1_000,
  maxStoredBytes: null,
};

export function describeTenants(open: Open): void {
  describe("tenants", () => {
    test("are made with a name and limits, found and listed, the default one always among them", async () => {
      const { api, clock } = await open();
      const at = new Date(clock.now()).toISOString().replace(".000", "");
      const acme = await api.tenants.create({ name: " Acme ", limits: { maxQueued: 5, maxStreams: null } });
      expect(acme).toEqual({
        id: expect.stringMatching(/^ten_[0-9a-f]{32}$/),
        name: "Acme",
        disabled: false,
        limits: { ...NONE, maxQueued: 5 },
        storedBytes: null,
        createdAt: expect.stringContaining(at.slice(0, 19)),
        updatedAt: acme.createdAt,
      });
      expect(await api.tenants.get(acme.id)).toEqual(acme);
      expect(await api.tenants.list()).toMatchObject({
        count: 2,
        tenants: [
          {
            id: "default",
            name: "default",
            disabled: false,
            limits: { ...NONE, maxSchedules: null, maxSessions: null, maxAgents: 10_000 },
          },
          acme,
        ],
      });
    });

    test("show what they store once that is bounded, and refuse more with the numbers", async () => {
      const { api } = await open();
      const bounded = await api.tenants.update("default", { limits: { maxStoredBytes: 3_000 } });
      expect(bounded).toMatchObject({ limits: { maxStoredBytes: 3_000 }, storedBytes: 0 });
      await api.tasks.submit({ payload: "x".repeat(500), runAt: "2099-01-01T00:00:00Z" });
      const { storedBytes } = await api.tenants.get("default");
      expect(storedBytes).toBeGreaterThan(1_524);
      expect(await errorOf(api.tasks.submit({ payload: "x".repeat(500) }))).toMatchObject({
        code: "quota_exceeded",
        details: { bytes: storedBytes, storedBytes, maxStoredBytes: 3_000 },
      });
      expect(await errorOf(api.sessions.send("chat", { message: "x".repeat(500) }))).toMatchObject({
        code: "quota_exceeded",
      });
      const freed = await api.tenants.update("default", { limits: { maxStoredBytes: null } });
      expect(freed.storedBytes).toBeNull();
    });

    test("change in what is named, and null takes a limit back", async () => {
      const { api, clock } = await open();
      const { id } = await api.tenants.create({ name: "Acme", limits: { maxQueued: 5, maxInflight: 2 } });
      await clock.advance(1_000);
      const changed = await api.tenants.update(id, { limits: { maxQueued: null, maxSchedules: 0 } });
      expect(changed).toMatchObject({ name: "Acme", limits: { ...NONE, maxInflight: 2, maxSchedules: 0 } });
      expect(changed.updatedAt > changed.createdAt).toBe(true);
      expect(await api.tenants.update(id, { name: "Acme Ltd" })).toMatchObject({ name: "Acme Ltd" });
      expect(await api.tenants.update(id, {})).toMatchObject({ name: "Acme Ltd", limits: changed.limits });
      const back = await api.tenants.update(id, { limits: null } as never);
      expect(back).toMatchObject({ name: "Acme Ltd", limits: NONE });
      expect(await api.tenants.update("default", { limits: { maxQueued: 9 } })).toMatchObject({
        id: "default",
        limits: { maxQueued: 9 },
      });
    });

    test("are disabled, enabled and deleted; deleting ends what runs", async () => {
      const { api, rota } = await open();
      const { id } = await api.tenants.create({ name: "Acme" });
      expect(await api.tenants.disable(id)).toMatchObject({ id, disabled: true });
      expect(await api.tenants.get(id)).toMatchObject({ disabled: true });
      expect(await api.tenants.enable(id)).toMatchObject({ id, disabled: false });
      let aborted = false;
      rota.agent("slow", async (_task, { signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        aborted = true;
      });
      await rota.tenant(id).tasks.submit({ agentId: "slow", payload: 1 });
      await settle();
      expect(await api.tenants.delete(id)).toEqual({ deleted: true });
      await settle();
      expect(aborted).toBe(true);
      expect(await errorOf(api.tenants.get(id))).toMatchObject({ code: "not_found" });
      expect((await api.tenants.list()).count).toBe(1);
    });

    test("have unique names", async () => {
      const { api } = await open();
      await api.tenants.create({ name: "Acme" });
      const { id } = await api.tenants.create({ name: "Zeta" });
      const taken = { code: "conflict", details: { field: "name" } };
      expect(await errorOf(api.tenants.create({ name: "Acme" }))).toMatchObject(taken);
      expect(await errorOf(api.tenants.update(id, { name: "Acme" }))).toMatchObject(taken);
      expect(await api.tenants.update(id, { name: "Zeta" })).toMatchObject({ name: "Zeta" });
      expect(await errorOf(api.tenants.delete("default"))).toMatchObject({ code: "conflict" });
    });

    test("get a new webhook secret, which is shown this once", async () => {
      const { api } = await open();
      const { id } = await api.tenants.create({ name: "Acme" });
      const first = await api.tenants.rotateWebhookSecret(id);
      expect(first).toEqual({ secret: expect.stringMatching(/^whsec_/), previousUntil: null });
      const second = await api.tenants.rotateWebhookSecret(id);
      expect(second.secret).not.toBe(first.secret);
      expect(second.previousUntil).toMatch(/^\d{4}-.*Z$/);
      expect(JSON.stringify(await api.tenants.get(id))).not.toContain("whsec_");
    });

    test.each(["get", "disable", "enable", "delete", "rotateWebhookSecret"] as const)(
      "are not found where there are none: %s",
      async (method) => {
        const { api } = await open();
        for (const id of ["ten_1", "no such", "ten_1/../default", "🦓", "\0", "x".repeat(500)]) {
          expect(await errorOf(api.tenants[method](id))).toMatchObject({
            code: "not_found",
            message: "tenant not found",
          });
        }
        expect(await errorOf(api.tenants.update("ten_1", {}))).toMatchObject({ code: "not_found" });
      },
    );

    test.each([
      [{}, "`name` is missing"],
      [{ name: " " }, "`name` must be 1 to 128 characters on one line"],
      [{ name: "a\nb" }, "`name` must be 1 to 128 characters on one line"],
      [{ name: "x".repeat(129) }, "`name` must be 1 to 128 characters on one line"],
      [{ name: 5 }, "`name` must be a string"],
      [{ name: "a", limit: {} }, "unknown field `limit`: did you mean `limits`?"],
      [{ name: "a", limits: 5 }, "`limits` must be an object"],
      [{ name: "a", limits: { maxQued: 1 } }, "did you mean `limits.maxQueued`?"],
      [{ name: "a", limits: { maxQueued: -1 } }, "`limits.maxQueued` must be an integer from 0"],
      [{ name: "a", limits: { maxInflight: "5" } }, "`limits.maxInflight` must be an integer"],
    ])("are refused when %j cannot be one", async (input, message) => {
      const { api } = await open();
      expect(await errorOf(api.tenants.create(input as never))).toMatchObject({
        code: "invalid_field",
        message: expect.stringContaining(message),
      });
      expect((await api.tenants.list()).count).toBe(1);
    });
  });
}

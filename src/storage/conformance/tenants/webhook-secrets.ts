import { describe, expect, test } from "vitest";
import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type { StorageSignal } from "../../storage.ts";
import type { OpenWorld } from "../world.ts";
import { UNBOUNDED } from "./share-out.ts";

const OVERLAP_MS = 1_000;

export function describeWebhookSecrets(open: OpenWorld): void {
  async function openWithTenant() {
    const world = await open();
    const { tenants } = world.storage;
    await tenants.create({ id: "ten_1", name: "Acme", limits: UNBOUNDED });
    const rotate = (secret: string, id = "ten_1") =>
      tenants.rotateWebhookSecret({ id, secret, overlapMs: OVERLAP_MS });
    return { ...world, tenants, rotate };
  }

  describe("webhook secrets", () => {
    test("are none before the first rotation", async () => {
      const { tenants, rotate } = await openWithTenant();
      expect(await tenants.webhookSecrets()).toEqual([]);
      expect(await rotate("one")).toEqual({ found: true, previous: null });
      expect(await tenants.webhookSecrets()).toEqual([{ tenant: "ten_1", secret: "one", expiresAt: null }]);
    });

    test("are two at most: the newest, and the one before it for a while", async () => {
      const { tenants, rotate, clock } = await openWithTenant();
      await rotate("one");
      clock.step(10);
      const previous = { tenant: "ten_1", secret: "one", expiresAt: clock.now() + OVERLAP_MS };
      expect(await rotate("two")).toEqual({ found: true, previous });
      expect(await tenants.webhookSecrets()).toEqual([
        { tenant: "ten_1", secret: "two", expiresAt: null },
        previous,
      ]);
      clock.step(10);
      const later = { tenant: "ten_1", secret: "two", expiresAt: clock.now() + OVERLAP_MS };
      expect(await rotate("three")).toEqual({ found: true, previous: later });
      expect(await tenants.webhookSecrets()).toEqual([
        { tenant: "ten_1", secret: "three", expiresAt: null },
        later,
      ]);
    });

    test("follow the configured one in the default tenant alone", async () => {
      const { tenants, rotate, clock } = await openWithTenant();
      const previous = { tenant: DEFAULT_TENANT, secret: null, expiresAt: clock.now() + OVERLAP_MS };
      expect(await rotate("one", DEFAULT_TENANT)).toEqual({ found: true, previous });
      await rotate("other");
      expect(await tenants.webhookSecrets()).toEqual([
        { tenant: DEFAULT_TENANT, secret: "one", expiresAt: null },
        previous,
        { tenant: "ten_1", secret: "other", expiresAt: null },
      ]);
      clock.step(2 * OVERLAP_MS);
      expect(await rotate("two", DEFAULT_TENANT)).toMatchObject({ previous: { secret: "one" } });
    });

    test("are made for tenants that there are, and go with them", async () => {
      const { tenants, rotate } = await openWithTenant();
      expect(await rotate("one", "unknown")).toEqual({ found: false });
      await rotate("one");
      await tenants.delete({ id: "ten_1", limit: 10 });
      expect(await tenants.webhookSecrets()).toEqual([]);
    });

    test("are signalled to all nodes when they change", async () => {
      const { storage, rotate } = await openWithTenant();
      const signals: StorageSignal[] = [];
      const unsubscribe = storage.subscribe((signal) => signals.push(signal));
      await rotate("one");
      unsubscribe();
      expect(signals).toContainEqual({ kind: "tenants" });
    });
  });
}

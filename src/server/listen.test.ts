import { expect, onTestFinished, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { listen } from "./listen.ts";

test("others can reach it only while there is a key that has not expired, of any tenant", async () => {
  const { rota, log, clock } = await openTestRota();
  const open = () => listen({ rota, log, clock, host: "0.0.0.0", port: 0 });
  await expect(open()).rejects.toMatchObject({ code: "forbidden" });
  const expiresAt = new Date(clock.now() + 60_000).toISOString();
  const { id: tenantId } = await rota.tenants.create({ name: "acme" });
  await rota.keys.create({ role: "admin", name: "for a while", expiresAt });
  const first = await open();
  await first.close();
  await clock.advance(60_000);
  await expect(open()).rejects.toThrow("so an API key is required and no valid one exists");
  await rota.keys.create({ role: "tenant-admin", name: "for good", tenantId });
  const second = await open();
  onTestFinished(() => second.close());
});

test("with keys that have all expired, this machine is not admitted without one either", async () => {
  const { rota, log, clock } = await openTestRota();
  const expiresAt = new Date(clock.now() + 60_000).toISOString();
  await rota.keys.create({ role: "admin", name: "for a while", expiresAt });
  await clock.advance(60_000);
  const server = await listen({ rota, log, clock, host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  expect((await fetch(`${server.url}/tasks`)).status).toBe(401);
});

test.each(["localhost", "LOCALHOST", "LocalHost"])(
  "%s is this machine, and works without keys",
  async (host) => {
    const { rota, log } = await openTestRota();
    const server = await listen({ rota, log, host, port: 0 });
    onTestFinished(() => server.close());
    expect((await fetch(`${server.url}/tasks`)).status).toBe(200);
  },
);

import { expect, test } from "vitest";
import { RotaClient } from "../../src/client/index.ts";
import { Chance } from "./chance.ts";
import { openWorld } from "./world.ts";

/** Large enough that a few tasks need pages which the database does not have. */
const PAYLOAD = "x".repeat(50_000);
const TRIES_MAX = 200;

test("a server whose database is full says so, loses nothing, and goes on once there is room", async () => {
  const world = await openWorld({ storage: "sqlite", nodes: 1, chance: new Chance(1), callbackFailures: 0 });
  try {
    const [node] = world.nodes;
    const rota = new RotaClient({ url: node?.url ?? "", retry: false });
    const submit = () =>
      rota.tasks.submit({ payload: PAYLOAD, runAt: new Date(Date.now() + 3_600_000).toISOString() });
    const accepted = [await submit()];

    node?.signal("SIGUSR2");
    const refusal = await (async () => {
      for (let tries = 0; tries < TRIES_MAX; tries += 1) accepted.push(await submit());
    })().catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "storage_unavailable", message: expect.stringContaining("full") });
    for (const { taskId } of accepted) expect((await rota.tasks.get(taskId)).state).toBe("delayed");

    node?.signal("SIGUSR2");
    await expect.poll(submit, { timeout: 20_000 }).toMatchObject({ state: "delayed" });
    expect((await rota.tasks.counts()).counts.delayed).toBeGreaterThan(accepted.length);
  } finally {
    await world.close({ logs: false });
  }
});

import type { LocalTenant, Rota } from "../../src/interface/rota.ts";
import { createRota } from "../../src/rota.ts";
import { AGENTS, schedulerOptions } from "../workload.ts";

/** A key of each. */
export interface TenantKeys {
  readonly victim: string;
  readonly attacker: string;
}

const AT_ONCE = 50;
const PER_CALL = 1_000;

/**
 * Makes the tenants in an empty storage, and ended tasks of others than the victim: half are the attacker's, half of a
 * third tenant. That is done through the library, before the node is started: over HTTP it would take minutes.
 */
export async function makeTenants(storage: string, { tasks }: { tasks: number }): Promise<TenantKeys> {
  const rota = await createRota({
    storage,
    scheduler: schedulerOptions({ atOnce: AT_ONCE }),
    executors: { custom: () => null },
  });
  try {
    const victim = await makeTenant(rota, "victim");
    const attacker = await makeTenant(rota, "attacker");
    const crowd = await makeTenant(rota, "crowd");
    if (tasks > 0) await storeTasks(rota, [rota.tenant(attacker.id), rota.tenant(crowd.id)], tasks);
    return { victim: victim.key, attacker: attacker.key };
  } finally {
    await rota.stop();
  }
}

async function makeTenant(rota: Rota, name: string): Promise<{ id: string; key: string }> {
  const { id } = await rota.tenants.create({ name });
  const { key } = await rota.keys.create({ role: "operator", name, tenantId: id });
  return { id, key };
}

/** In the lane `tasks` and of the priorities 1 to 3: a search for others looks at all of them, unless an index helps. */
async function storeTasks(rota: Rota, tenants: readonly LocalTenant[], count: number): Promise<void> {
  await rota.start();
  for (let stored = 0; stored < count; stored += PER_CALL) {
    const tenant = tenants[(stored / PER_CALL) % tenants.length];
    const size = Math.min(PER_CALL, count - stored);
    await tenant?.tasks.submitMany(
      Array.from({ length: size }, (_, n) => ({
        agentId: `agent-${n % AGENTS}`,
        lane: "tasks",
        priority: 1 + (n % 3),
        payload: { n },
      })),
    );
  }
  for (;;) {
    const counts = await Promise.all(tenants.map(async (tenant) => (await tenant.tasks.counts()).counts));
    if (counts.reduce((sum, { done }) => sum + (done ?? 0), 0) >= count) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

import type { LocalTenant, Rota } from "../../src/interface/rota.ts";
import type { TenantLimitsInput } from "../../src/interface/tenants.ts";
import { Held } from "./held.ts";
import { openTestRota, type TestRotaParams } from "./rota.ts";

/** A Rota that runs, with an agent `held` whose tasks end when the test lets them. */
export async function startedRota(params: TestRotaParams = {}) {
  const opened = await openTestRota(params);
  const held = new Held();
  opened.rota.agent("held", held.executor);
  await opened.rota.start();
  return { ...opened, held };
}

let names = 0;

export async function createTenant(
  rota: Rota,
  limits: TenantLimitsInput = {},
): Promise<{ readonly id: string; readonly tenant: LocalTenant }> {
  const { id } = await rota.tenants.create({ name: `tenant ${++names}`, limits });
  return { id, tenant: rota.tenant(id) };
}

export async function stateOf({ tasks }: Pick<LocalTenant, "tasks">, taskId: string): Promise<string> {
  return (await tasks.get(taskId)).state;
}

import { setTimeout as delay } from "node:timers/promises";
import { RotaClient } from "../../src/client/index.ts";
import type { DoctorReport } from "../../src/interface/doctor.ts";
import type { Tenancy } from "./tenancy.ts";

/** When everything is well again, the last task must have ended after this: leases, retries and time limits included. */
export const PATIENCE_MS = 120_000;
const LOOK_MS = 100;
const UNFINISHED = ["waiting_dependency", "delayed", "queued", "assigned", "running"] as const;

/** Examines everything while schedules still fire, then lets everything come to its end. */
export async function settle(
  url: string,
  tenancies: readonly Tenancy[],
  rootKey: string,
): Promise<DoctorReport> {
  const report = await examine(new RotaClient({ url, key: rootKey }));
  for (const { key, ledger } of tenancies) {
    const rota = new RotaClient({ url, key });
    for (const { id } of (await rota.schedules.list()).schedules) {
      const { updated_at: at } = await rota.schedules.update(id, { enabled: false });
      ledger.edits.push({ deed: "paused", scheduleId: id, at });
    }
  }
  // A task that has not ended by then never will, and the checks report it.
  for (const { key, ledger } of tenancies) {
    const rota = new RotaClient({ url, key });
    for (const id of ledger.bulkIds) {
      const isRunning = async () => (await rota.bulks.get(id)).state === "running";
      await untilNone(async () => ({ count: (await isRunning()) ? 1 : 0 }));
    }
    await untilNone(() => rota.tasks.list({ state: UNFINISHED, limit: 1 }));
  }
  return report;
}

/** Waits until every callback is delivered or given up. One that is still pending by then is a fault that the checks report. */
export async function untilCalledBack(url: string, tenancies: readonly Tenancy[]): Promise<void> {
  for (const { key } of tenancies) {
    const rota = new RotaClient({ url, key });
    await untilNone(() => rota.webhooks.deliveries({ status: "pending", limit: 1 }));
  }
}

/** Due times during downtime are overdue until the nodes have caught up. */
async function examine(rota: RotaClient): Promise<DoctorReport> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  let doctor = await rota.doctor();
  while (!doctor.ok && performance.now() < giveUpAt) {
    await delay(LOOK_MS);
    doctor = await rota.doctor();
  }
  return doctor;
}

async function untilNone(list: () => Promise<{ readonly count: number }>): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (performance.now() < giveUpAt && (await list()).count > 0) await delay(LOOK_MS);
}

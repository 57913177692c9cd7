import type { Storage } from "../../storage/storage.ts";

const PAGE = 200;

export interface ExamineLanesOptions {
  readonly storage: Pick<Storage, "agents" | "schedules" | "tenants">;
  /** Whether tasks that are submitted here can use a lane. */
  readonly hasLane: (lane: string) => boolean;
  /** Awaited after each page of schedules. If it throws, the examination ends. */
  readonly onSlice: (schedules: number) => Promise<void>;
}

/** What is wrong in each tenant: stored agents and schedules that name a lane which does not exist. */
export async function examineLanes(options: ExamineLanesOptions): Promise<Map<string, readonly string[]>> {
  const { storage, hasLane, onSlice } = options;
  const found = new Map<string, string[]>();
  const name = (tenant: string, what: string, lane: unknown) => {
    if (typeof lane !== "string" || hasLane(lane)) return;
    const finding = `${what} names the lane ${JSON.stringify(lane)}, which does not exist, so its tasks use "main": create the lane, or name another.`;
    found.set(tenant, [...(found.get(tenant) ?? []), finding]);
  };
  for (const { tenant, agent, definition } of await storage.agents.list())
    name(tenant, `The agent "${agent}"`, definition["lane"]);
  for (const { id: tenant } of await storage.tenants.list()) {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page = await storage.schedules.page({ tenant, after, limit: PAGE });
      for (const { id, lane } of page) name(tenant, `Schedule #${id}`, lane);
      await onSlice(page.length);
      after = page.at(-1)?.id;
    }
  }
  return found;
}

import type { Storage } from "../../storage/storage.ts";

/** Schedules of a deleted key that are paused in one transaction. */
const PAUSED_AT_ONCE = 500;

/** The key whose schedules are paused. `name`: left out, it is not known any more. */
export interface GoneKey {
  readonly tenant: string;
  readonly id: string;
  readonly name?: string;
}

/** The schedules of a key end with it, until a caller resumes them. */
export async function pauseOfKey(storage: Storage, { tenant, id: key, name }: GoneKey): Promise<void> {
  const named = name === undefined ? key : `"${name}" (${key})`;
  const reason = `the API key ${named}, which made it, was deleted`;
  const params = { tenant, key, reason, limit: PAUSED_AT_ONCE };
  for (let more = true; more; ) ({ more } = await storage.schedules.pauseOfKey(params));
}

import { RotaError } from "../model/errors.ts";
import type { KeyRecord, Storage } from "../storage/storage.ts";

/** The key with this id. Null: it was deleted or has expired, so that nothing may be done on its behalf any more. */
export async function liveKey(
  storage: Storage,
  { tenant, id }: { readonly tenant: string; readonly id: string },
  now: number,
): Promise<KeyRecord | null> {
  const key = await storage.keys.get({ tenant, id });
  return key === null || (key.expiresAt !== null && key.expiresAt <= now) ? null : key;
}

/** For what a task would make on behalf of such a key. */
export function keyGone(): RotaError {
  return new RotaError("forbidden", "the API key that submitted this task was deleted or has expired");
}

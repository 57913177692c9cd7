import { RotaError } from "../model/errors.ts";

/** Whether a call failed because the storage could not be reached, so that the same call may work later. */
export function isStorageAway(error: unknown): boolean {
  return error instanceof RotaError && error.code === "storage_unavailable";
}

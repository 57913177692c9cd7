import type { InsertClaim, InsertTasksParams } from "./storage.ts";

/** Whether an insert can claim: not if it has to look for tasks of the same idempotency key, or to count for its caller first. */
export function canClaim({ tasks, bounds }: Pick<InsertTasksParams, "tasks" | "bounds">): boolean {
  return bounds === undefined && tasks.every(({ idempotency }) => idempotency === null);
}

/** The claim to make with an insert of tasks that do not exist yet; undefined: none. */
export function claimOfInsert(params: InsertTasksParams): InsertClaim | undefined {
  return canClaim(params) ? params.claim : undefined;
}

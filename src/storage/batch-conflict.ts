import { RotaError } from "../model/errors.ts";

/** A task of a batch whose key was used for another request: `taskId` is what that made, `refused` the task that was not. */
export function batchConflict(conflict: { readonly taskId: string; readonly refused: string }): RotaError {
  return new RotaError(
    "idempotency_conflict",
    `\`idempotencyKey\` was used within 24 hours for another request, which made the task ${conflict.taskId}: take a new key`,
    { details: { field: "idempotencyKey", ...conflict } },
  );
}

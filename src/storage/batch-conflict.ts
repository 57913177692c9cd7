import { RotaError } from "../model/errors.ts";

/** The key of a task in a batch was used for another request: `taskId` is the task of that request, `refused` the new one. */
export function batchConflict(conflict: { readonly taskId: string; readonly refused: string }): RotaError {
  return new RotaError(
    "idempotency_conflict",
    `\`idempotencyKey\` was used within 24 hours for another request, which made the task ${conflict.taskId}: take a new key`,
    { details: { field: "idempotencyKey", ...conflict } },
  );
}

import type { DeliveryRecord } from "../storage/storage.ts";

const TASK_PREFIX = "tsk_";
const PREFIX = "whd_";

/** The public id of a delivery. It contains the task id, since different storages assign the same delivery numbers. */
export function deliveryId({ taskId, seq }: Pick<DeliveryRecord, "taskId" | "seq">): string {
  return `${PREFIX}${taskId.startsWith(TASK_PREFIX) ? taskId.slice(TASK_PREFIX.length) : taskId}_${seq}`;
}

/** The delivery number in an id; null: the id has another form. The caller must compare the id of the delivery it finds. */
export function seqOfDelivery(id: unknown): number | null {
  const digits = typeof id === "string" ? /^whd_.+_([1-9]\d{0,15})$/s.exec(id)?.[1] : undefined;
  const seq = Number(digits);
  return Number.isSafeInteger(seq) ? seq : null;
}

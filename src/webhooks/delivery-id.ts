import type { DeliveryRecord } from "../storage/storage.ts";

const TASK_PREFIX = "tsk_";
const PREFIX = "whd_";

/** What a delivery is called outside: numbers of different storages are alike, ids of tasks are not. */
export function deliveryId({ taskId, seq }: Pick<DeliveryRecord, "taskId" | "seq">): string {
  return `${PREFIX}${taskId.startsWith(TASK_PREFIX) ? taskId.slice(TASK_PREFIX.length) : taskId}_${seq}`;
}

/** The number of the delivery that an id may name; whether it does is known once it is found. Null: it names none. */
export function seqOfDelivery(id: unknown): number | null {
  const digits = typeof id === "string" ? /^whd_.+_([1-9]\d{0,15})$/s.exec(id)?.[1] : undefined;
  const seq = Number(digits);
  return Number.isSafeInteger(seq) ? seq : null;
}

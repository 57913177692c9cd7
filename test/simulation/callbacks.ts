import type { RotaEvent } from "../../src/model/event.ts";
import { seqOfDelivery } from "../../src/webhooks/delivery-id.ts";
import type { History } from "../chaos/history.ts";
import type { Exchange } from "./receiver.ts";
import type { World } from "./world.ts";

const ENDS: readonly string[] = ["task.completed", "task.failed", "task.cancelled"];
/** What lets another process repeat a callback that the first is still sending: a process that sleeps, a clock that is set. */
const EXCUSES = ["pause", "stall", "doubt", "reset"] as const;

/**
 * Every end of a task that has a `callbackUrl` is one delivery, numbered as the event of the end. It is over once the
 * receiver has accepted it or all attempts were made, and is never sent twice at the same time.
 */
export function callbacks(history: History, world: World): string[] {
  const { deliveries, receiver } = world;
  const byNumber = new Map(deliveries.map((delivery) => [seqOfDelivery(delivery.deliveryId), delivery]));
  const tries = Map.groupBy(receiver.exchanges, ({ id }) => id);
  const wanted = new Map(
    history.events.filter((event) => isReported(event, history)).map((event) => [event.seq, event]),
  );
  const findings: string[] = [];
  for (const [seq, { taskId, type }] of wanted)
    if (!byNumber.has(seq)) findings.push(`${taskId}: no callback was due for ${type} (event ${seq})`);
  for (const [seq, { deliveryId: id, status, event, state = event, ...delivery }] of byNumber) {
    const seen = tries.get(id) ?? [];
    const cause = wanted.get(seq ?? 0);
    if (cause === undefined) findings.push(`${id} reports something that did not happen`);
    else if (delivery.batchId === undefined && cause.state !== state)
      findings.push(`${id} reports ${state}, and event ${seq} ${cause.state}`);
    if (seen.some(({ state: reported }) => reported !== state))
      findings.push(`${id} reported another state than ${state}`);
    if (status === "pending") findings.push(`${id} is still pending`);
    if (status === "delivered" && !seen.some(({ accepted }) => accepted))
      findings.push(`${id} is delivered, and no receiver accepted it`);
    if (status === "failed" && seen.length === 0) findings.push(`${id} failed, and was not tried`);
    if (seen.length > delivery.tries)
      findings.push(`${id} was tried ${seen.length} times, and ${delivery.tries} are counted`);
  }
  for (const [id, seen] of tries) {
    if (!byNumber.has(seqOfDelivery(id))) findings.push(`${id} was sent, and is not in the list`);
    if (!EXCUSES.some((excuse) => world.worst.mishaps.includes(excuse)) && overlap(seen))
      findings.push(`${id} was sent twice at the same time`);
  }
  return findings;
}

function isReported({ type, taskId }: RotaEvent, { tasks }: History): boolean {
  const task = tasks.get(taskId);
  if (type === "batch.completed") return task?.metadata?.["callsBack"] === true;
  return ENDS.includes(type) && task?.callbackUrl !== undefined;
}

function overlap(seen: readonly Exchange[]): boolean {
  const inOrder = seen.toSorted((a, b) => a.from - b.from);
  return inOrder.some(({ from }, index) => {
    const before = inOrder[index - 1];
    return before !== undefined && (before.until === null || from < before.until);
  });
}

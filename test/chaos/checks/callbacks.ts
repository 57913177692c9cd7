import { isDeepStrictEqual } from "node:util";
import type { Delivery } from "../../../src/model/delivery.ts";
import type { EventType, RotaEvent } from "../../../src/model/event.ts";
import type { Task } from "../../../src/model/task.ts";
import { type Callback, type History, markOf } from "../history.ts";

/** A callback that is not wanted any more, or has been tried so often, is given up. */
const GONE = 410;
const TRIES_MAX = 4;

/** The expected content and URL of a callback. */
interface Expected {
  readonly event: RotaEvent;
  readonly url: string;
  /** How many attempts there had been. */
  readonly attempts: number;
}

/**
 * Every end of a task that names a URL, and of a batch that does, is sent there: once at least, signed, as the log has it;
 * and what is listed of it is what its receivers saw.
 */
export function callbacks(history: History): string[] {
  const expected = expectedOf(history);
  const listed = new Map(history.deliveries.map((delivery) => [delivery.deliveryId, delivery]));
  const requests = Map.groupBy(history.callbacks, ({ deliveryId }) => deliveryId);
  const findings: string[] = [];
  for (const id of listed.keys()) if (!expected.has(id)) findings.push(`${id} is for nothing in the log`);
  for (const id of requests.keys()) if (!listed.has(id)) findings.push(`${id} was sent, and is not listed`);
  for (const [id, wanted] of expected) {
    const delivery = listed.get(id);
    const list = requests.get(id) ?? [];
    const said =
      delivery === undefined
        ? [`the end in event ${wanted.event.seq} has no callback`]
        : [...unlike(delivery, wanted), ...unproved(delivery, list, history)];
    const wrong = list.flatMap((callback) => wrongRequests(callback, wanted));
    findings.push(...[...said, ...wrong].map((finding) => `${id}: ${finding}`));
  }
  return findings;
}

const ENDS: readonly EventType[] = ["task.completed", "task.failed", "task.cancelled"];

/** By the id that each must have: the number of the event of the end. */
function expectedOf({ events, tasks }: History): Map<string, Expected> {
  const expected = new Map<string, Expected>();
  const attempts = new Map<string, number>();
  for (const event of events) {
    const { type, taskId, seq } = event;
    if (type === "task.started") attempts.set(taskId, (attempts.get(taskId) ?? 0) + 1);
    const url = urlOf(type, tasks.get(taskId));
    if (url !== undefined)
      expected.set(`whd_${taskId.replace(/^tsk_/, "")}_${seq}`, {
        event,
        url,
        attempts: attempts.get(taskId) ?? 0,
      });
  }
  return expected;
}

function urlOf(type: EventType, task: Task | undefined): string | undefined {
  if (type === "batch.completed") return markOf(task).batchCallbackUrl;
  return ENDS.includes(type) ? task?.callbackUrl : undefined;
}

function unlike(delivery: Delivery, { event, url }: Expected): string[] {
  const { type, taskId, batchId, state } = event;
  const should =
    type === "batch.completed"
      ? { event: "batch.completed", taskId, batchId, state: undefined, url }
      : { event: "task.completed", taskId, batchId: undefined, state, url };
  return Object.entries(should)
    .filter(([name, value]) => delivery[name as keyof Delivery] !== value)
    .map(([name, value]) => `its ${name} is ${delivery[name as keyof Delivery]}, not ${value}`);
}

/** The status of a delivery matches what its receiver saw. */
function unproved(delivery: Delivery, list: readonly Callback[], history: History): string[] {
  const { status, tries, deliveryId } = delivery;
  const answers = list.map(({ answered }) => answered ?? 0);
  const resent = history.acknowledged.flatMap((requests) =>
    requests.what === "resent" && requests.deliveryId === deliveryId ? [requests.after] : [],
  );
  const findings: string[] = [];
  if (status === "delivered" && !answers.some((answer) => answer >= 200 && answer < 300))
    findings.push("it is delivered, and no receiver got it");
  if (status === "failed" && list.length === 0) findings.push("it is given up, and no receiver was called");
  if (status === "failed" && tries < TRIES_MAX && !answers.includes(GONE))
    findings.push(`it is given up after ${tries} tries`);
  if (status === "pending") findings.push("it is still pending");
  // One that is pending may have been tried once more since that was read.
  const isCounted = status !== "pending" && !history.resendsAsked.includes(deliveryId);
  if (isCounted && list.length > tries)
    findings.push(`it was sent ${list.length} times, and tried ${tries} times`);
  const last = history.callbacks.lastIndexOf(list.at(-1) as Callback);
  if (status !== "pending" && resent.some((after) => last < after))
    findings.push("it was to be sent once more, and was not");
  return findings;
}

function wrongRequests(callback: Callback, { event, url, attempts }: Expected): string[] {
  const { type, taskId, batchId, state, error, result, counts } = event;
  const ofBatch = type === "batch.completed";
  const { body } = callback;
  const findings: string[] = [];
  if (!callback.genuine) findings.push("its signature does not verify");
  if (callback.url !== url) findings.push(`it was sent to ${callback.url}`);
  if (callback.event !== (ofBatch ? "batch.completed" : "task.completed"))
    findings.push(`it was sent as ${callback.event}`);
  if (callback.taskId !== (ofBatch ? null : taskId)) findings.push(`it was sent for ${callback.taskId}`);
  const should = ofBatch
    ? { batchId, counts }
    : { taskId, state, error, result: state === "done" ? result : undefined };
  for (const [name, value] of Object.entries(should))
    if (!isDeepStrictEqual(body[name], value))
      findings.push(`it was sent with the ${name} ${JSON.stringify(body[name])}`);
  const shown = body["attempts"];
  if (!ofBatch && (!Array.isArray(shown) || shown.length !== attempts))
    findings.push(`it was sent with other attempts than the ${attempts} there had been`);
  return findings;
}

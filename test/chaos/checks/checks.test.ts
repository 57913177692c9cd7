import { describe, expect, test } from "vitest";
import type { Run } from "../../../src/interface/schedules.ts";
import type { Delivery } from "../../../src/model/delivery.ts";
import type { AttemptOutcome, Task } from "../../../src/model/task.ts";
import type { Callback, Check, Edit, Finish, History } from "../history.ts";
import { madeCall, madeCallback, madeDelivery, madeHistory, type Story } from "../made-history.ts";
import { abilities } from "./abilities.ts";
import { acceptedOnce } from "./accepted-once.ts";
import { attempts } from "./attempts.ts";
import { batches } from "./batches.ts";
import { bulks } from "./bulks.ts";
import { callbacks } from "./callbacks.ts";
import { calls } from "./calls.ts";
import { counted } from "./counted.ts";
import { dependants } from "./dependants.ts";
import { doctor } from "./doctor.ts";
import { dueMoments } from "./due-moments.ts";
import { edits } from "./edits.ts";
import { eventLog } from "./event-log.ts";
import { finishes } from "./finishes.ts";
import { CHECKS, check } from "./index.ts";
import { limits } from "./limits.ts";
import { nothingLost } from "./nothing-lost.ts";
import { oneEnd } from "./one-end.ts";
import { sessionOrder } from "./session-order.ts";
import { walls } from "./walls.ts";

const DONE = ["a created", "a started", "a completed"];
const FAILED = ["a created", "a started", "a failed"];
const RETRIED = ["a created", "a started", "a retrying", "a started", "a completed"];

interface Case {
  /** What the history has wrong, or why it is well all the same. */
  readonly name: string;
  readonly history: History;
  /** The fault that the checks report; null: none. */
  readonly says: RegExp | null;
}

function expectOf(look: Check, cases: readonly Case[]): void {
  test.each(cases)("$name", ({ history, says }) => {
    const findings = look(history);
    if (says === null) expect(findings).toEqual([]);
    // One fault may show in more than one way.
    else expect(findings).toContainEqual(expect.stringMatching(says));
  });
}

const made = (name: string, says: RegExp | null, story: Story, faults: Partial<History> = {}): Case => ({
  name,
  history: madeHistory(story, faults),
  says,
});

test("a history in which all is well passes every check", () => {
  const story = { log: [...DONE, "b created", "b cancelled"], tasks: { a: { metadata: { marker: "m" } } } };
  const acknowledged = [{ what: "task", taskId: "a", marker: "m" } as const];
  const answered = [madeCall({ taskId: "a", began: 1, ended: 2, answer: { result: "result of a" } })];
  expect(check(madeHistory(story, { acknowledged, calls: answered }))).toEqual([]);
  expect(Object.keys(CHECKS)).toHaveLength(19);
});

describe("nothing acknowledged is lost", () => {
  const marked = { a: { metadata: { marker: "m" } } };
  const acknowledging = (acknowledgement: History["acknowledged"][number], more: Partial<History> = {}) => ({
    acknowledged: [acknowledgement],
    ...more,
  });
  const task = { what: "task", taskId: "a", marker: "m" } as const;
  const message = { what: "message", taskId: "a", sessionKey: "s", text: "two" } as const;
  const ended = { what: "ended", taskId: "a", state: "done", result: "result of a" } as const;
  expectOf(nothingLost, [
    made("an accepted task is there", null, { log: DONE, tasks: marked }, acknowledging(task)),
    made("an accepted task is gone", /a .*is gone/, { log: [] }, acknowledging(task)),
    made("an accepted task is another", /accepted as m/, { log: DONE }, acknowledging(task)),
    made(
      "a message was joined to others",
      null,
      { log: DONE, tasks: { a: { message: "one\ntwo" } } },
      acknowledging(message),
    ),
    made(
      "a message was left out",
      /"two"/,
      { log: DONE, tasks: { a: { message: "one" } } },
      acknowledging(message),
    ),
    made(
      "a cancel is forgotten",
      /was cancelled/,
      { log: DONE },
      acknowledging({ what: "cancelled", taskId: "a" }),
    ),
    made(
      "a retry is forgotten",
      /was retried/,
      { log: FAILED },
      acknowledging({ what: "retried", taskId: "a" }),
    ),
    made(
      "a schedule is gone",
      /schedule 7/,
      { log: [] },
      acknowledging({ what: "scheduled", scheduleId: 7 }),
    ),
    made("an end that was reported stays", null, { log: DONE }, acknowledging(ended)),
    made(
      "an end that was reported is taken back",
      /reported as done and is failed/,
      { log: FAILED },
      acknowledging(ended),
    ),
    made("a result changes", /another result/, { log: DONE }, acknowledging({ ...ended, result: "other" })),
    made(
      "a failure that was reported is taken back by a retry",
      null,
      { log: [...FAILED, "a retrying", "a started", "a completed"] },
      acknowledging({ ...ended, state: "failed", result: undefined }, { retriesAsked: ["a"] }),
    ),
  ]);
});

describe("each submission creates one task", () => {
  const log = [...DONE, "b created", "b started", "b completed"];
  const both = { a: { metadata: { marker: "m" } }, b: { metadata: { marker: "m" } } };
  expectOf(acceptedOnce, [
    made("each has its own marker", null, { log, tasks: { a: { metadata: { marker: "m" } } } }),
    made("two tasks have one marker", /m was accepted twice/, { log, tasks: both }),
    made("a rejected one does not count", null, { log: [...DONE, "b rejected"], tasks: both }),
  ]);
});

describe("every task ends, once", () => {
  expectOf(oneEnd, [
    made(
      "it fails, and is brought back when asked",
      null,
      { log: [...FAILED, "a retrying", "a started", "a completed"] },
      { retriesAsked: ["a"] },
    ),
    made("it comes back unasked", /came back 1 times/, {
      log: [...FAILED, "a retrying", "a started", "a completed"],
    }),
    made("its node gives it back before it began, after its delay", null, {
      log: ["a created delayed", "a retrying", "a started", "a completed"],
    }),
    made("it ends twice", /task.failed .* while it was done/, { log: [...DONE, "a failed"] }),
    made("it starts after its end", /task.started .* while it was cancelled/, {
      log: ["a created", "a cancelled", "a started", "a completed"],
    }),
    made("it is created twice", /task.created .* while it was queued/, {
      log: ["a created", "a created", "a cancelled"],
    }),
    made("it is done without a start", /task.completed .* while it was queued/, {
      log: ["a created", "a completed"],
    }),
    made("it never ends", /has not ended: it is running/, { log: ["a created", "a started"] }),
    made("the log says something else", /is failed, and the log says done/, {
      log: DONE,
      tasks: { a: { state: "failed" } },
    }),
    made("it is in the log only", /nowhere else/, { log: DONE }, { tasks: new Map() }),
  ]);
});

describe("no task has two live attempts", () => {
  const one = (task: Partial<Task>) => ({ log: RETRIED, tasks: { a: task } });
  const twoAtOnce = ["a created", "a started", "a started", "a completed"];
  const numberedTwice = madeHistory({ log: RETRIED }).events.map((event) =>
    event.attempt === 2 ? { ...event, attempt: 1 } : event,
  );
  const never = { maxRetries: 0, backoffMs: 1, backoffMultiplier: 1, maxBackoffMs: 1, jitter: 0 };
  expectOf(attempts, [
    made("one after the other", null, { log: RETRIED }),
    made("two at once", /attempt 2 started while attempt 1 was live/, { log: twoAtOnce }),
    made(
      "one number twice",
      /attempt 1 started after attempt 1/,
      { log: RETRIED },
      { events: numberedTwice },
    ),
    made("one is not shown", /2 attempts were started, and 0/, one({ attempts: [] })),
    made("one has no end", /attempt 1 has no end/, { log: ["a created", "a started"] }),
    made("it is retried more often than it may be", /retried 4 times, of 3/, one({ retryCount: 4 })),
    made("a message gets one more", null, one({ kind: "message", retryCount: 1, retryPolicy: never })),
  ]);
});

describe("each attempt calls its agent once", () => {
  const answer = { result: "result of a" };
  const first = madeCall({ taskId: "a", attempt: 1, began: 1, ended: 2 });
  const second = madeCall({ taskId: "a", attempt: 2, began: 3, ended: 4, answer });
  const lingering = { ...first, ended: 9 };
  const acknowledging = (list: History["calls"], more: Partial<History> = {}): Partial<History> => ({
    calls: list,
    ...more,
  });
  const lost = (log: readonly string[]) => {
    const task = madeHistory({ log }).tasks.get("a") as Task;
    return {
      log,
      tasks: {
        a: {
          attempts: task.attempts.map((shown) =>
            shown.number === 1 ? { ...shown, outcome: "lost" as const } : shown,
          ),
        },
      },
    };
  };
  expectOf(calls, [
    made("a call for each attempt", null, { log: RETRIED }, acknowledging([first, second])),
    made("an attempt that was lost before its call", null, { log: RETRIED }, acknowledging([second])),
    made(
      "an attempt calls twice",
      /attempt 1 called twice/,
      { log: RETRIED },
      acknowledging([first, first, second]),
    ),
    made(
      "an attempt calls twice, since a crash of the database forgot its start",
      null,
      { log: DONE },
      acknowledging([first, { ...first, began: 3, ended: 4, answer }], { crashes: [{ from: 1, until: 2 }] }),
    ),
    made(
      "a call from another node, since a crash of the database forgot its start",
      null,
      { log: DONE },
      acknowledging(
        [
          { ...first, node: "m", ended: null },
          { ...first, began: 3, ended: 4, answer },
        ],
        {
          crashes: [{ from: 2, until: null }],
        },
      ),
    ),
    made(
      "an attempt calls twice long before the database crashes",
      /attempt 1 called twice/,
      { log: DONE },
      acknowledging([first, { ...first, began: 3, ended: 4, answer }], { crashes: [{ from: 2, until: 9 }] }),
    ),
    made(
      "an attempt calls twice long after the database crashed",
      /attempt 1 called twice/,
      { log: DONE },
      acknowledging(
        [
          { ...first, began: 3, ended: 4 },
          { ...first, began: 5, ended: 6, answer },
        ],
        {
          crashes: [{ from: 1, until: 3 }],
        },
      ),
    ),
    made(
      "a crash of the database does not excuse the result of the attempt that was forgotten",
      /its result is not/,
      { log: DONE },
      acknowledging(
        [
          { ...first, answer },
          { ...first, began: 3, ended: 4 },
        ],
        { crashes: [{ from: 1, until: 3 }] },
      ),
    ),
    made(
      "a call without a claim",
      /attempt 3 called and was never granted/,
      { log: RETRIED },
      acknowledging([first, second, { ...first, attempt: 3, began: 5, ended: 6 }]),
    ),
    made(
      "a call from another node",
      /was granted to n and called from m/,
      { log: RETRIED },
      acknowledging([first, { ...second, node: "m" }]),
    ),
    made(
      "a call of a task that is not there",
      /z was called for, and is not there/,
      { log: RETRIED },
      acknowledging([first, second, { ...first, taskId: "z" }]),
    ),
    made(
      "a result that an older attempt was answered",
      /its result is not/,
      { log: RETRIED },
      acknowledging([
        { ...first, answer },
        { ...second, answer: null },
      ]),
    ),
    made(
      "a result from nowhere",
      /its result is not/,
      { log: DONE },
      acknowledging([{ ...first, answer: { result: "other" } }]),
    ),
    made("a result without a call", /its result is not/, { log: DONE }),
    made("the default agent makes no calls", null, { log: DONE, tasks: { a: { agentId: "index" } } }),
    made(
      "two at once, without a reason",
      /attempt 2 called while attempt 1/,
      { log: RETRIED },
      acknowledging([lingering, second]),
    ),
    made(
      "two at once, and the older was lost with a node that slept",
      null,
      lost(RETRIED),
      acknowledging([lingering, second], { strikes: [{ process: "node-0", from: 0, until: 2 }] }),
    ),
    made(
      "two at once, and the older was taken from a node that was well",
      /attempt 2 called while attempt 1/,
      lost(RETRIED),
      acknowledging([lingering, second], { strikes: [{ process: "node-1", from: 0, until: 2 }] }),
    ),
    made(
      "two at once, long after the node of the older had got over its fault",
      /attempt 2 called while attempt 1/,
      lost(RETRIED),
      acknowledging([lingering, second], { strikes: [{ process: "node-0", from: 0, until: 1 }] }),
    ),
    made(
      "two at once, and the older was pre-empted",
      null,
      { log: ["a created", "a started", "a preempted", "a started", "a completed"] },
      acknowledging([lingering, second]),
    ),
  ]);
});

describe("a node starts only what it can execute", () => {
  const call = madeCall({ taskId: "a", began: 1, ended: 2 });
  const homes = { worker: ["node-0"] };
  const failed = { log: FAILED, tasks: { a: { error: 'no executor for agent "worker": add the agent' } } };
  expectOf(abilities, [
    made("by the process that has the agent", null, { log: DONE }, { calls: [call], homes }),
    made(
      "an agent that every process has",
      null,
      { log: DONE },
      { calls: [{ ...call, process: "node-1" }], homes: { other: [] } },
    ),
    made(
      "by a process that does not have the agent",
      /a: node-1 started it, and does not have worker/,
      { log: DONE },
      { calls: [{ ...call, process: "node-1" }], homes },
    ),
    made(
      "by a process that does not have the agent, and therefore did not call it",
      /a: node-1 started it/,
      { log: DONE },
      { calls: [{ ...call, taskId: "b", process: "node-1" }], homes },
    ),
    made("a task that failed for want of an executor", /for want of an executor/, failed),
    made("a task that failed for another reason", null, { log: FAILED, tasks: { a: { error: "it broke" } } }),
  ]);
});

describe("no limit is exceeded", () => {
  const two = ["a created", "b created", "a started", "b started", "a completed", "b completed"];
  const inTurn = ["a created", "b created", "a started", "a completed", "b started", "b completed"];
  const same = (task: Partial<Task>) => ({ a: task, b: task });
  const given = (limit: Partial<History["limits"]>) => ({
    limits: { lanes: {}, agents: {}, sessions: {}, ...limit },
  });
  const calling = [
    madeCall({ taskId: "a", began: 1, ended: 3 }),
    madeCall({ taskId: "b", began: 2, ended: 4 }),
  ];
  const ofTwo = two.map((line) => `x/${line}`);
  const handedIn = { "x/a": { metadata: { marker: "a" } }, "x/b": { metadata: { marker: "b" } } };
  const queue = (maxQueued: number) => given({ tenants: { x: { maxQueued } } });
  const lane = (perNode: number, total: number) => given({ lanes: { tasks: { perNode, total } } });
  /** From the event with this number on there are two tenants. */
  const shared = (perNode: number, total: number, from: number) =>
    given({
      lanes: { tasks: { perNode, total } },
      laneShare: { max: 0.8, holdsAt: (seq) => seq >= from },
    });
  expectOf(limits, [
    made("a lane in turn", null, { log: inTurn }, lane(1, 1)),
    made("a lane that runs two", /lane tasks: 2 at once, of 1/, { log: two }, lane(2, 1)),
    made(
      "a node that runs two",
      /lane tasks on n: 2 at once, of 1/,
      { log: two },
      { ...lane(1, 2), calls: calling },
    ),
    made(
      "a node that was granted two, and learned of one",
      null,
      { log: two },
      { ...lane(1, 2), calls: calling.slice(1) },
    ),
    made(
      "a tenant",
      /tenant default: 2 at once, of 1/,
      { log: two },
      given({ tenants: { default: { maxInflight: 1 } } }),
    ),
    made(
      "a tenant's share of a lane",
      /share of tenant default in lane tasks: 2 at once, of 1/,
      { log: two },
      shared(9, 2, 0),
    ),
    made(
      "a tenant's share of a node",
      /share of tenant default in lane tasks on n: 2 at once, of 1/,
      { log: two },
      { ...shared(2, 9, 0), calls: calling },
    ),
    made(
      "shares of two tenants are two",
      null,
      { log: two.map((line) => line.replace("b ", "x/b ")) },
      { ...shared(2, 2, 0), calls: calling },
    ),
    made("a share before a second tenant exists", null, { log: two }, shared(2, 2, 1_000)),
    made(
      "a start beyond the share, once a second tenant exists",
      /share of tenant default in lane tasks: 2 at once, of 1/,
      { log: two },
      shared(2, 2, 4),
    ),
    made(
      "an agent in a lane",
      /agent worker in lane tasks: 2/,
      { log: two },
      given({ lanes: { tasks: { perNode: 9, total: 9, perAgent: 1 } } }),
    ),
    made(
      "an agent in two lanes",
      /agent worker: 2 at once, of 1/,
      { log: two, tasks: { b: { lane: "main" } } },
      given({ agents: { worker: 1 } }),
    ),
    made("a session", /session s: 2 at once, of 1/, { log: two, tasks: same({ sessionKey: "s" }) }),
    made(
      "a session that may run two",
      null,
      { log: two, tasks: same({ sessionKey: "s" }) },
      given({ sessions: { s: 2 } }),
    ),
    made("a concurrency key", /concurrency key k: 2 at once, of 1/, {
      log: two,
      tasks: same({ concurrencyKey: "k" }),
    }),
    made("a concurrency key in turn", null, { log: inTurn, tasks: same({ concurrencyKey: "k" }) }),
    made("a batch", /batch x: 2 at once, of 1/, {
      log: two,
      tasks: same({ batchId: "x", metadata: { parallelism: 1 } }),
    }),
    made(
      "a tenant in two lanes",
      /tenant x: 2 at once, of 1/,
      { log: ofTwo, tasks: { "x/b": { lane: "main" } } },
      given({ tenants: { x: { maxInflight: 1 } } }),
    ),
    made(
      "agents of two tenants are two",
      null,
      { log: two.map((line) => line.replace("b ", "x/b ")) },
      given({ agents: { worker: 1 } }),
    ),
    made("a tenant's queue has room", null, { log: ofTwo, tasks: handedIn }, queue(2)),
    made("a tenant's queue is full", /tenant x: 2 wait, of 1/, { log: ofTwo, tasks: handedIn }, queue(1)),
    made("work that was not submitted as a task takes no room", null, { log: ofTwo }, queue(1)),
    made(
      "a retry may come where there is no room",
      null,
      {
        log: [
          "x/a created",
          "x/a started",
          "x/b created",
          "x/a retrying delayed",
          "x/b cancelled",
          "x/a cancelled",
        ],
        tasks: handedIn,
      },
      queue(1),
    ),
    made(
      "progress is no second start",
      null,
      {
        log: ["a created", "a started", "a progress", "a completed", "b created", "b started", "b completed"],
      },
      lane(1, 1),
    ),
  ]);
});

describe("sessions keep their order", () => {
  const tasks = { a: { sessionKey: "s" }, b: { sessionKey: "s" } };
  const sideBySide = { limits: { lanes: {}, agents: {}, sessions: { s: 2 } } };
  const waiting = [
    "a created",
    "b created",
    "a started",
    "a retrying delayed",
    "b started",
    "a started",
    "a completed",
    "b completed",
  ];
  expectOf(sessionOrder, [
    made("one after the other", null, { log: [...DONE, "b created", "b started", "b completed"], tasks }),
    made(
      "the second first",
      /b started before a/,
      { log: ["a created", "b created", "b started", "b completed", "a started", "a completed"], tasks },
      sideBySide,
    ),
    made("a retry wait keeps its place", /b started while a had not ended/, { log: waiting, tasks }),
    made("two at once where two may be", null, { log: waiting, tasks }, sideBySide),
    made("sessions of two tenants are two", null, {
      log: ["a created", "x/b created", "x/b started", "a started", "x/b completed", "a completed"],
      tasks: { a: { sessionKey: "s" }, "x/b": { sessionKey: "s" } },
    }),
    made("one that was cancelled is passed", null, {
      log: ["a created", "b created", "a cancelled", "b started", "b completed"],
      tasks,
    }),
    made("one that is brought back goes behind", null, {
      log: [...FAILED, "b created", "a retrying", "b started", "b completed", "a started", "a completed"],
      tasks,
    }),
  ]);
});

describe("dependants follow their dependencies", () => {
  const tasks = { b: { dependsOn: ["a"] } };
  const waits = "b created waiting_dependency";
  const handed = [
    madeCall({ taskId: "b", began: 1, ended: 2, dependencies: [{ taskId: "a", result: "result of a" }] }),
  ];
  expectOf(dependants, [
    made(
      "starts once all is done, with the results",
      null,
      { log: ["a created", waits, "a started", "a completed", "b started", "b completed"], tasks },
      { calls: handed },
    ),
    made(
      "is not handed the results",
      /was not handed/,
      { log: [...DONE, waits, "b started", "b completed"], tasks },
      { calls: [madeCall({ taskId: "b", began: 1, ended: 2 })] },
    ),
    made("starts too early", /b started while a was running/, {
      log: ["a created", waits, "a started", "b started", "a completed", "b completed"],
      tasks,
    }),
    made("is cancelled with its parent", null, {
      log: ["a created", waits, "a cancelled", "b cancelled: dependency a cancelled"],
      tasks,
    }),
    made("is cancelled before its parent has failed", /which had not happened/, {
      log: ["a created", waits, "a started", "b cancelled: dependency a failed", "a failed"],
      tasks,
    }),
    made("waits for a parent that has failed", /b is waiting_dependency, and a/, {
      log: ["a created", waits, "a cancelled"],
      tasks,
    }),
    made("is cancelled though its parent is done", /though all it depends on is done/, {
      log: [...FAILED, waits, "b cancelled: dependency a failed", "a retrying", "a started", "a completed"],
      tasks,
    }),
    made(
      "is cancelled before its parent came back",
      null,
      {
        log: [...FAILED, waits, "b cancelled: dependency a failed", "a retrying", "a started", "a completed"],
        tasks,
      },
      { retriesAsked: ["a"] },
    ),
  ]);
});

describe("each batch completes once", () => {
  const tasks = { a: { batchId: "x" }, b: { batchId: "x" } };
  const begun = ["a created", "b created", "a started", "a completed"];
  expectOf(batches, [
    made("after the last", null, { log: [...begun, "b cancelled", "b batch.completed"], tasks }),
    made("before the last", /while b was queued/, {
      log: [...begun, "b batch.completed", "b cancelled"],
      tasks,
    }),
    made("twice", /twice/, {
      log: [...begun, "b cancelled", "b batch.completed", "b batch.completed"],
      tasks,
    }),
    made("never", /never reported/, { log: [...begun, "b cancelled"], tasks }),
    made("and then there is more of it", /was complete when b was added/, {
      log: [...DONE, "a batch.completed", "b created", "b cancelled"],
      tasks,
    }),
  ]);
});

describe("every end is sent to its callback URL", () => {
  const url = "http://sent/1";
  const story = { log: DONE, tasks: { a: { callbackUrl: url } } };
  const delivery = madeDelivery({ deliveryId: "whd_a_3", taskId: "a", url, state: "done" });
  const body = { taskId: "a", state: "done", result: "result of a", attempts: [{}] };
  const acknowledging = madeCallback({ deliveryId: "whd_a_3", taskId: "a", url, body });
  const listed = (more: Partial<Delivery>, list: readonly Callback[] = [acknowledging]) => ({
    deliveries: [{ ...delivery, ...more }],
    callbacks: list,
  });
  const received = (...list: Partial<Callback>[]) =>
    listed(
      {},
      list.map((more) => ({ ...acknowledging, ...more })),
    );
  const failed = { answered: 500 };
  const givenUp = { status: "failed", tries: 4, responseStatus: 500 } as const;
  const resent = { acknowledged: [{ what: "resent", deliveryId: "whd_a_3", after: 1 } as const] };
  const ofBatch = {
    log: [...DONE, "a batch.completed"],
    tasks: { a: { batchId: "x", metadata: { batchCallbackUrl: url } } },
  };
  const counted = madeHistory(ofBatch).events.map((event) =>
    event.type === "batch.completed" ? { ...event, counts: { done: 1 } } : event,
  );
  const allEnded = {
    events: counted,
    deliveries: [
      madeDelivery({ deliveryId: "whd_a_4", event: "batch.completed", taskId: "a", batchId: "x", url }),
    ],
  };
  const callbackOfBatch = (counts: unknown) => [
    madeCallback({
      deliveryId: "whd_a_4",
      event: "batch.completed",
      taskId: null,
      url,
      body: { batchId: "x", counts },
    }),
  ];
  const twice = {
    log: [...FAILED, "a retrying", "a started", "a completed"],
    tasks: { a: { callbackUrl: url } },
  };
  expectOf(callbacks, [
    made("it is sent", null, story, received({})),
    made("a task without a callback URL sends nothing", null, { log: DONE }),
    made(
      "it is sent again until it is taken",
      null,
      story,
      listed({ tries: 2 }, [{ ...acknowledging, ...failed }, acknowledging]),
    ),
    made("it is given up after four tries", null, story, listed(givenUp, [{ ...acknowledging, ...failed }])),
    made("it is given up when the receiver refuses it", null, story, {
      ...listed({ status: "failed" }, [{ ...acknowledging, answered: 410 }]),
    }),
    made("an end has no callback", /the end in event 3 has no callback/, story, {
      callbacks: [acknowledging],
    }),
    made("of two ends one has no callback", /the end in event 6 has no callback/, twice, {
      deliveries: [{ ...delivery, state: "failed" }],
    }),
    made("one is for nothing", /whd_a_2 is for nothing/, story, {
      deliveries: [delivery, { ...delivery, deliveryId: "whd_a_2" }],
      callbacks: [acknowledging],
    }),
    made("one is sent that is not listed", /whd_b_9 was sent, and is not listed/, story, {
      ...received({}, { deliveryId: "whd_b_9" }),
    }),
    made(
      "one is listed with another end",
      /its state is failed, not done/,
      story,
      listed({ state: "failed" }),
    ),
    made("one is delivered that no receiver got", /no receiver got it/, story, received(failed)),
    made("one is delivered without a call", /no receiver got it/, story, listed({}, [])),
    made("one is given up too early", /given up after 1 tries/, story, listed({ status: "failed" })),
    made("one is given up without a call", /no receiver was called/, story, listed(givenUp, [])),
    made("one is never sent", /still pending/, story, listed({ status: "pending" }, [])),
    made(
      "one is sent more often than it was tried",
      /sent 2 times, and tried 1 times/,
      story,
      received({}, {}),
    ),
    made("one is sent once more when asked", null, story, {
      ...received({}, {}),
      ...resent,
      resendsAsked: ["whd_a_3"],
    }),
    made("one is not sent once more", /once more, and was not/, story, { ...received({}), ...resent }),
    made("a signature is wrong", /does not verify/, story, received({ genuine: false })),
    made("it is sent somewhere else", /sent to http:\/\/else/, story, received({ url: "http://else" })),
    made("it is sent as something else", /sent as task.failed/, story, received({ event: "task.failed" })),
    made("it is sent of another", /sent for b/, story, received({ taskId: "b" })),
    made(
      "it is sent with another end",
      /the state "failed"/,
      story,
      received({ body: { ...body, state: "failed" } }),
    ),
    made(
      "it is sent with another result",
      /the result "x"/,
      story,
      received({ body: { ...body, result: "x" } }),
    ),
    made("it is sent as it is later", /other attempts than the 1/, story, {
      ...received({ body: { ...body, attempts: [{}, {}] } }),
    }),
    made("a batch is sent", null, ofBatch, { ...allEnded, callbacks: callbackOfBatch({ done: 1 }) }),
    made("a batch is sent with other counts", /the counts/, ofBatch, {
      ...allEnded,
      callbacks: callbackOfBatch({ done: 2 }),
    }),
  ]);
});

describe("every due time has one row", () => {
  const story = { log: DONE, tasks: { a: { scheduleId: 1 } } };
  const became = { status: "succeeded", queue_task_id: "a" } as const;
  const whole = [madeRun(1, 10, became), madeRun(2, 11), madeRun(4, 14, { moments: 3 }), madeRun(5, 15)];
  const rows = (name: string, says: RegExp | null, runs: readonly Run[]) => made(name, says, story, { runs });
  expectOf(dueMoments, [
    rows("from the first to the last", null, whole),
    rows("one is missing", /no row for the moments from 16 to before 17/, [...whole, madeRun(6, 17)]),
    rows("one has two", /the moment 11 has two rows/, [...whole, madeRun(6, 11)]),
    rows("one is inside of another's", /the moment 13 has two rows/, [...whole, madeRun(6, 13)]),
    rows("a run does not end", /run 6 has not ended/, [...whole, madeRun(6, 16, { status: "running" })]),
    rows("a run says something else than its task", /is failed, and its task done/, [
      madeRun(1, 10, { ...became, status: "failed" }),
    ]),
    rows("a task has two runs", /is the task of run 1 and of run 6/, [...whole, madeRun(6, 16, became)]),
    rows("a task has no run", /of none of its runs/, [madeRun(1, 10)]),
    made("one is missing of a schedule that was paused", null, story, {
      runs: [...whole, madeRun(6, 17)],
      schedules: [1],
      fickle: [1],
    }),
    made("a schedule is gone with its runs", null, story, { fickle: [1] }),
    made("a schedule was changed and a task has no run", /of none of its runs/, story, {
      schedules: [1],
      fickle: [1],
    }),
  ]);
});

/** A run of schedule 1 that was skipped. */
function madeRun(id: number, due_at: number, more: Partial<Run> = {}): Run {
  return {
    id,
    task_id: 1,
    due_at,
    moments: 1,
    status: "skipped",
    started_at: 0,
    queue_task_id: null,
    ...more,
  } as Run;
}

/** Due every second from 10, paused at 13, resumed at 16, then every 3 seconds from 19, and over at 26. */
const EDITS: readonly Edit[] = [
  { deed: "due", scheduleId: 1, at: 9, nextAt: 10, everySec: 1 },
  { deed: "paused", scheduleId: 1, at: 13 },
  { deed: "due", scheduleId: 1, at: 16, nextAt: 17, everySec: 1 },
  { deed: "due", scheduleId: 1, at: 18, nextAt: 21, everySec: 3 },
  { deed: "paused", scheduleId: 1, at: 26 },
];
const ROWS = [10, 11, 12, 17, 21, 24].map((at) => madeRun(at, at));
const edited = (name: string, says: RegExp | null, runs: readonly Run[], more: readonly Edit[] = []) =>
  made(name, says, { log: [] }, { runs, edits: [...EDITS, ...more] });

describe("every due moment of a schedule that is edited has one row", () => {
  const ran = (runId: number | null): Edit => ({ deed: "ran", scheduleId: 1, runId });
  expectOf(dueMoments, [
    edited("each has one", null, ROWS),
    edited("those at the moment of an edit may have one", null, [...ROWS, madeRun(1, 13), madeRun(2, 18)]),
    edited("the first has none", /no row for the moment 10/, ROWS.slice(1)),
    edited("the last before the pause has none", /no row for the moment 12/, ROWS.toSpliced(2, 1)),
    edited("the first after the change has none", /no row for the moment 21/, ROWS.toSpliced(4, 1)),
    edited("one row stands for several", null, [
      ...ROWS.slice(0, 4),
      madeRun(1, 24, { moments: 2, status: "missed" }),
    ]),
    made(
      "a change was written late, and one row stands for what was due meanwhile",
      null,
      { log: [] },
      {
        runs: [
          madeRun(10, 10),
          madeRun(13, 13),
          madeRun(19, 19, { moments: 5, status: "missed" }),
          madeRun(20, 20),
        ],
        edits: [
          { deed: "due", scheduleId: 1, at: 9, nextAt: 10, everySec: 3 },
          { deed: "due", scheduleId: 1, at: 19, nextAt: 15, everySec: 1 },
          { deed: "paused", scheduleId: 1, at: 21 },
        ],
      },
    ),
    edited("one has two", /the moment 11 has 2 rows/, [...ROWS, madeRun(1, 11)]),
    edited("one has two, of which one was asked for", null, [...ROWS, madeRun(1, 11)], [ran(1)]),
    edited(
      "one has two, and a run was requested without an answer",
      null,
      [...ROWS, madeRun(1, 11)],
      [ran(null)],
    ),
    edited(
      "it was deleted, and its rows with it",
      null,
      [],
      [{ deed: "deleted", scheduleId: 1, before: "z" }],
    ),
  ]);
});

describe("edits of schedules take effect", () => {
  const deleted: readonly Edit[] = [{ deed: "deleted", scheduleId: 1, before: "z" }];
  const fired = (...log: string[]) => ({ log, tasks: { a: { scheduleId: 1 } } });
  const done = ["z created", "z started", "z completed"];
  expectOf(edits, [
    edited("it fires when it is due", null, ROWS),
    made(
      "it was made so slowly that its first moments had come",
      null,
      { log: [] },
      {
        runs: [madeRun(1, 10), madeRun(2, 11), madeRun(3, 12)],
        edits: [
          { deed: "due", scheduleId: 1, at: 12, nextAt: 10, everySec: 1 },
          { deed: "paused", scheduleId: 1, at: 13 },
        ],
      },
    ),
    edited("it fires while it is paused", /a row for 14, when it was not due/, [...ROWS, madeRun(1, 14)]),
    edited("it fires as it was due before", /a row for 19, when it was not due/, [...ROWS, madeRun(1, 19)]),
    edited("it fires too early", /fired for 12 at 11/, ROWS.with(2, madeRun(12, 12, { started_at: 11 }))),
    edited("it fires late", null, ROWS.with(2, madeRun(12, 12, { started_at: 15 }))),
    edited("it fires before it was made", /a row for 8, when/, [...ROWS, madeRun(1, 8)]),
    edited(
      "it fires while it is paused, since a caller requested it",
      null,
      [...ROWS, madeRun(1, 14)],
      [{ deed: "ran", scheduleId: 1, runId: 1 }],
    ),
    made("it is deleted", null, fired(...DONE, ...done), { edits: deleted }),
    made(
      "it is deleted and there",
      /schedule 1 was deleted, and is there/,
      { log: [] },
      {
        edits: deleted,
        schedules: [1],
      },
    ),
    made(
      "it is deleted and has a run",
      /and has run 7/,
      { log: [] },
      {
        edits: deleted,
        runs: [madeRun(7, 10)],
      },
    ),
    made("it is deleted and fires", /and fired a after that/, fired(...done, ...DONE), { edits: deleted }),
  ]);
});

describe("every event is sent once and in order", () => {
  const readers = (...seqs: number[][]) => ({
    followed: seqs.map((each) => ({ tenantId: "default", seqs: each })),
  });
  const two = { log: ["a created", "x/b created", "a cancelled"] };
  const ofTenant = (tenantId: string, seqs: number[]) => ({ followed: [{ tenantId, seqs }] });
  const { events } = madeHistory({ log: DONE });
  expectOf(eventLog, [
    made("to all", null, { log: DONE }, readers([1, 2, 3], [1, 2, 3])),
    made("one is missed", /reader 1 was never handed events 2/, { log: DONE }, readers([1, 2, 3], [1, 3])),
    made("one is sent twice", /handed an event twice/, { log: DONE }, readers([1, 2, 2, 3])),
    made("one is sent too late", /handed event 2 after event 3/, { log: DONE }, readers([1, 3, 2])),
    made("to each tenant what is its own", null, two, ofTenant("x", [2])),
    made("to a tenant what is another's", /not in the log: 1/, two, ofTenant("x", [1, 2])),
    made("one is sent that did not happen", /not in the log: 4/, { log: DONE }, readers([1, 2, 3, 4])),
    made(
      "the log itself is out of order",
      /event 1 comes after event 1/,
      { log: DONE },
      { events: [...events.slice(0, 1), ...events], followed: [] },
    ),
  ]);
});

describe("no tenant sees objects of another", () => {
  const story = { log: ["a created", "x/b created", "a cancelled"] };
  const view = (tenantId: string, ...things: string[]) => ({ tenantId, things });
  const own = [view("default", "task a", "event 1", "event 3"), view("x", "task x/b", "event 2")];
  const knock = (expected: number, status: number) => ({
    knocks: [{ asked: "GET /tasks/a", expected, status }],
  });
  expectOf(walls, [
    made("each sees what is its own", null, story, { views: own }),
    made("a task is shown to two", /task a is shown to default and to x/, story, {
      views: [...own, view("x", "task a")],
    }),
    made("an event is shown to another", /event 1 is of default and is shown to x/, story, {
      views: [view("default", "event 3"), view("x", "event 1", "event 2")],
    }),
    made("who asks for another's finds nothing", null, story, knock(404, 404)),
    made("who asks for another's is shown it", /answered with 200, not with 404/, story, knock(404, 200)),
    made("who asks for another's learns that it is there", /with 409, not/, story, knock(404, 409)),
    made("no caller is admitted", /answered with 200, not with 401/, story, knock(401, 200)),
    made("a caller with a key is not admitted", /answered with 401, not with 200/, story, knock(200, 401)),
  ]);
});

test("what the doctor finds is found", () => {
  const bad = { name: "counters", ok: false, summary: "1 thing is wrong.", findings: ["a counter lies"] };
  const report = { ok: false, checks: [bad] };
  expect(doctor(madeHistory({ log: DONE }, { doctor: report }))).toEqual([
    "doctor, counters: a counter lies",
  ]);
});

describe("bulk actions run to their end", () => {
  const bulk = {
    bulkId: "blk_1",
    action: "cancel",
    filter: null,
    matched: 3,
    done: 1,
    failed: 1,
    skipped: 1,
    state: "done",
    by: null,
  } as const;
  const story = { log: DONE };
  expectOf(bulks, [
    made("all of it", null, story, { bulks: [bulk] }),
    made("it goes on", /blk_1 has not ended: it is running/, story, {
      bulks: [{ ...bulk, state: "running" }],
    }),
    made("one was passed over", /covered 2 tasks of 3/, story, { bulks: [{ ...bulk, skipped: 0 }] }),
    made("one was done twice", /covered 4 tasks of 3/, story, {
      bulks: [{ ...bulk, filter: { q: "a" }, done: 2 }],
    }),
    made("what a filter selected was over by then", null, story, {
      bulks: [{ ...bulk, filter: { q: "a" }, done: 0 }],
    }),
  ]);
});

describe("statistics match the events", () => {
  const story = { log: [...DONE, "x/b created", "x/b cancelled"] };
  const counts = { submitted: 1, started: 1, done: 1, failed: 0, cancelled: 0 };
  const of = (more: Partial<typeof counts>) => ({
    counted: [{ tenantId: "default", counts: { ...counts, ...more } }],
  });
  expectOf(counted, [
    made("each event once", null, story, of({})),
    made("one twice", /default: 2 are counted as done, and 1 were/, story, of({ done: 2 })),
    made("one of another's", /default: 1 are counted as cancelled, and 0/, story, of({ cancelled: 1 })),
    made("one never", /default: 0 are counted as started, and 1 were/, story, of({ started: 0 })),
  ]);
});

describe("an attempt that its worker never began", () => {
  const log = ["a created", "a retrying queued", "a started", "a completed"];
  const attempt = (number: number, outcome: AttemptOutcome) => ({
    number,
    startedAt: "",
    endedAt: "",
    outcome,
    error: null,
    node: "wrk_1",
  });
  const history = (first: AttemptOutcome) => {
    const tasks = { a: { attempts: [attempt(1, first), attempt(2, "done")] } };
    const made = madeHistory({ log, tasks });
    const numbers = [undefined, 1, 2, undefined];
    const events = made.events.map((event, index) => {
      const number = numbers[index];
      return number === undefined ? event : { ...event, attempt: number };
    });
    return { ...made, events };
  };
  test.each([
    ["was taken back", "interrupted"],
    ["was lost", "lost"],
  ] as const)("%s without a start", (_what, outcome) => {
    expect([...oneEnd(history(outcome)), ...attempts(history(outcome))]).toEqual([]);
  });

  test("may have waited for its next attempt before", () => {
    const tasks = { a: { attempts: [attempt(1, "failed"), attempt(2, "lost"), attempt(3, "done")] } };
    const delayed = [
      "a created",
      "a started",
      "a retrying delayed",
      "a retrying queued",
      "a started",
      "a completed",
    ];
    const made = madeHistory({ log: delayed, tasks });
    const numbers = [undefined, 1, 1, 2, 3, undefined];
    const events = made.events.map((event, index) => {
      const number = numbers[index];
      return number === undefined ? event : { ...event, attempt: number };
    });
    expect(oneEnd({ ...made, events })).toEqual([]);
  });

  test("cannot have failed", () => {
    expect(oneEnd(history("failed"))).toContainEqual(expect.stringContaining("task.retrying (event 2)"));
    expect(attempts(history("failed"))).toContainEqual(expect.stringContaining("attempt 2 started after"));
  });
});

describe("each end that a worker reports counts once", () => {
  const finish = { taskId: "a", attempt: 1, outcome: "done", result: "result of a" } as const;
  const reported = (...given: readonly Partial<Finish>[]) => ({
    finishes: given.map((each) => ({ ...finish, recorded: true, repeated: false, ...each })),
  });
  const tasks = { a: { result: "result of a" } };
  expectOf(finishes, [
    made("recorded once", null, { log: DONE, tasks }, reported({})),
    made("repeated after a lost answer", null, { log: DONE, tasks }, reported({}, { repeated: true })),
    made("too late, as the answer says", null, { log: FAILED }, reported({ recorded: false })),
    made("recorded twice", /attempt 1 was recorded 2 times/, { log: DONE, tasks }, reported({}, {})),
    made("recorded, and not stored", /recorded as done, and shows failed/, { log: FAILED }, reported({})),
    made(
      "recorded as failed, and done",
      /recorded as failed, and shows done/,
      { log: DONE, tasks },
      reported({ outcome: "failed" }),
    ),
    made(
      "recorded with another result",
      /another result than the task shows/,
      { log: DONE, tasks },
      reported({ result: "another" }),
    ),
    made(
      "of a task that is not there",
      /the task is not there/,
      { log: DONE, tasks },
      reported({ taskId: "b" }),
    ),
  ]);
});

import { RotaError } from "../../model/errors.ts";
import type { Settlement } from "../../model/outcome.ts";
import type {
  BegunAttempt,
  Claim,
  EndedTask,
  FinishAndClaimParams,
  FinishedAndClaimed,
  Fire,
  InsertedTask,
  InsertTasksParams,
  NewRun,
  NewTask,
  ScheduleRecord,
  SubmitBounds,
} from "../storage.ts";
import {
  type Begun,
  type Command,
  type CommandBounds,
  type Finish,
  type FiredRun,
  type FiredSchedule,
  type Pick,
  type SubmittedTask,
  TENANTS,
} from "./commands.ts";
import { countAll } from "./log/rollups.ts";
import { newDefinition } from "./schedules/schedule-world.ts";
import { batchId, byEnd, choose, comparableDelivery, comparableSession, type Side } from "./side.ts";
import { runWorkerCommand } from "./workers/run-worker-command.ts";
import { customSpec, newTask, ROOMY_SHARES } from "./world.ts";

const [BATCH_TENANT = "", SESSION_TENANT = ""] = TENANTS;

/** Runs a command and returns the result in comparable form. The caller, which owns the clock, does the waiting. */
export async function runCommand(side: Side, command: Command): Promise<unknown> {
  const { tasks, nodes, lanes, agents, sessions, deliveries, tenants, counters } = side.storage;
  switch (command.do) {
    case "submit":
      return submit(side, command);
    case "step":
      return step(side, {
        node: side.nodes[command.node] ?? "",
        finishes: command.finishes.flatMap((finish) => toFinish(side, finish)),
        progress: command.progress.flatMap((pick) => toProgress(side, pick)),
        begun: command.begun.flatMap((begun) => toBegun(side, begun)),
        claims: command.claims.map(toClaim),
        ...(command.claimsMax !== null && { claimsMax: command.claimsMax }),
      });
    case "send":
      return send(side, command);
    case "stopSession":
      return stopSession(side, command);
    case "updateSession": {
      const { session: key, maxConcurrent, tokens, maxSessions } = command;
      const changes = { maxConcurrent, tokens, contextWindow: 1_000 };
      const updated = await orConflict(
        sessions.update({ tenant: SESSION_TENANT, key, defaultMax: 1, changes, maxSessions }),
      );
      return typeof updated === "string" ? updated : comparableSession(updated);
    }
    case "deleteSession":
      return sessions.delete({ tenant: SESSION_TENANT, key: command.session });
    case "readTurns": {
      const claim = side.chooseClaim(command.pick);
      return claim && sessions.readTurns({ ...claim, limit: command.limit });
    }
    case "takeMessages": {
      const claim = side.chooseClaim(command.pick);
      const taken = claim && (await sessions.takeMessages({ ...claim, after: 0 }));
      return taken?.map(({ taskId, message }) => ({ taskId, message }));
    }
    case "createSchedule":
      return createSchedule(side, command);
    case "updateSchedule":
      return updateSchedule(side, command);
    case "deleteSchedule": {
      const { pick, sparesRunning, limit } = command;
      const params = { ...side.chooseSchedule(pick), sparesRunning, ...(limit === null ? {} : { limit }) };
      const deleted = await side.storage.schedules.delete(params);
      return deleted && { ...deleted, cancelled: deleted.cancelled.map((each) => comparableEnd(side, each)) };
    }
    case "fire":
      return fire(side, command);
    case "rewind":
      return rewind(side, command);
    case "pruneRuns":
      return pruneRuns(side, command);
    case "clearLane": {
      const { tenant, name, limit } = command;
      const { cancelled, more } = await lanes.clear({ tenant, name, limit, error: "lane_cleared" });
      return { cancelled, more };
    }
    case "cancel":
      return cancel(side, command);
    case "retry": {
      const task = choose(side.tasks, command.pick) ?? { tenant: "acme", id: "unknown" };
      const { tenant, id } = task;
      const { dependants, bounds } = command;
      const answer = await orConflict(tasks.retry({ tenant, id, dependants, ...toBounds(bounds, tenant) }));
      if (typeof answer === "string") return answer;
      return "task" in answer ? { ...answer, task: { ...answer.task, seq: null } } : answer;
    }
    case "bulk":
      return bulk(side, command);
    case "expire":
      return tasks.expire(command);
    case "promote":
      return tasks.promoteDue(command);
    case "release":
      return tasks.release(command);
    case "wait":
      return undefined;
    case "crash":
      return crash(side, command.node);
    case "rescue":
      return rescue(side, choose(side.crashed, command.pick) ?? "unknown", command);
    case "loseTwice":
      return loseTwice(side, command);
    case "claimAlone": {
      const params = { node: side.nodes[command.node] ?? "", lanes: command.lanes };
      const waiting = await tasks.isAloneWaiting(params);
      return { waiting, ...noted(side, await tasks.claimAlone(params)) };
    }
    case "heartbeat": {
      const { alive, held } = await nodes.heartbeat({ node: side.nodes[command.node] ?? "" });
      return { alive, tokens: held.map(({ token }) => side.claimOf(token)).sort((a, b) => a - b) };
    }
    case "setSlots":
      return nodes.setSlots({
        node: side.nodes[command.node] ?? "",
        slots: { tasks: command.tasks, main: 1 },
        ...(command.perTenant === null ? {} : { perTenant: { tasks: command.perTenant } }),
      });
    case "setAbilities": {
      const names = [...command.names, ...command.agents];
      const serves = new Map(names.map((agent) => [agent, command.agents.includes(agent)]));
      return side.setAbilities(command.node, { agents: serves, kinds: command.kinds });
    }
    case "failUnserved":
      return tasks.failUnserved(command);
    case "configureLane": {
      const { do: _do, ...lane } = command;
      return lanes.configure({ lanes: [lane] });
    }
    case "configureAgent":
      return agents.configure(command);
    case "createAgent": {
      const { tenant, agent, maxInflight, serves } = command;
      const executor = serves ? { executor: { type: "echo" } } : {};
      return agents.create({ tenant, agent, maxInflight, definition: { maxInflight, ...executor } });
    }
    case "deleteAgent":
      return agents.delete(command);
    case "crowd":
      return crowd(side, command.lane);
    case "createTenant": {
      const { tenant: id, maxQueued, maxInflight } = command;
      // So high that nothing is refused: stored bytes are counted all the same.
      const limits = {
        maxQueued,
        maxInflight,
        maxSchedules: null,
        maxSessions: null,
        maxStreams: null,
        maxAgents: null,
        maxStoredBytes: 1_000_000_000,
      };
      const created = await tenants.create({ id, name: id, limits });
      for (let more = true; more; ) ({ more } = await tenants.countStored({ limit: 2 }));
      return created.taken;
    }
    case "boundTenant": {
      const { tenant: id, maxQueued, maxInflight } = command;
      return tenants.update({ id, limits: { maxQueued, maxInflight } });
    }
    case "disableTenant":
      return tenants.setDisabled({ id: command.tenant, disabled: command.disabled });
    case "deleteTenant":
      return deleteTenant(side, command);
    case "deliver": {
      // Claims all that are due: of several that ended at once, the order is not defined.
      const { holdMs } = command;
      const { claimed, nextAt } = await deliveries.claim({ shares: ROOMY_SHARES, held: [], holdMs });
      const handedOut = claimed.map(({ delivery }) => delivery).sort(byEnd);
      side.tries.push(...handedOut.map(({ seq, tries, dueAt }) => ({ seq, tries, heldUntil: dueAt ?? 0 })));
      return { handedOut: handedOut.map(comparableDelivery), nextAt };
    }
    case "settleDelivery": {
      const { status, afterMs } = command;
      const each = choose(side.tries, command.pick);
      if (each === undefined) return undefined;
      const { seq, tries } = each;
      const dueAt = status === "pending" ? side.clock.now() + afterMs : null;
      return deliveries.settle({ tries: [{ seq, tries, status, dueAt, responseStatus: 200, error: null }] });
    }
    case "putBackDelivery": {
      const each = choose(side.tries, command.pick);
      if (each === undefined) return undefined;
      return deliveries.putBack({ claims: [{ ...each, dueAt: side.clock.now() + command.afterMs }] });
    }
    case "resend": {
      const seq = choose(side.tries, command.pick)?.seq ?? 0;
      const answer = await deliveries.resend({ tenant: command.tenant, seq });
      return "delivery" in answer ? comparableDelivery(answer.delivery) : answer;
    }
    case "registerWorker":
    case "exchange":
    case "nameAttempts":
    case "loseWorker":
    case "renewWorker":
    case "drainWorker":
    case "takeBack":
    case "preemptForWorkers":
    case "removeWorker":
      return runWorkerCommand(side, command, (finish) => toFinish(side, finish));
    case "prune":
      return prune(side, command);
    case "rollUp":
      return countAll(side.storage, command.limit);
    case "recount":
      return counters.recountOne(command);
  }
}

function toClaim(claim: Extract<Command, { do: "step" }>["claims"][number]): Claim {
  const { lane, limit, perTenant, isAssigned, ahead } = claim;
  return {
    lane,
    limit,
    ...(isAssigned && { state: "assigned" }),
    ...(ahead !== null && { ahead }),
    ...(perTenant !== null && { perTenant: { max: perTenant.max, left: new Map(perTenant.left) } }),
  };
}

async function submit(side: Side, command: Extract<Command, { do: "submit" }>) {
  const { tasks, batch, bounds, claim, ...limits } = command;
  let claimed: unknown = null;
  const claiming = claim !== null && {
    claim: {
      node: side.nodes[claim.node] ?? "",
      claims: [{ lane: claim.lane, limit: claim.limit }],
      onClaimed: (answer: FinishedAndClaimed) => {
        claimed = noted(side, answer);
      },
    },
  };
  if (batch !== null) side.batches += 1;
  const repeated = new Set<string>();
  const inputs = tasks.map((task) => {
    // A task with an idempotency key may not exist, because its key returned another task. Its id then belongs to no task.
    const known = side.tasks.filter(({ keyed }) => !keyed);
    const earlier = task.repeats === null ? undefined : choose(known, task.repeats);
    const made = toNewTask(side, task, earlier?.id ?? `task-${side.tasks.length}`);
    // All tasks of a batch are of one tenant.
    const input: NewTask =
      batch !== null && task.inBatch ? { ...made, tenant: BATCH_TENANT, batch: batchId(side.batches) } : made;
    if (earlier === undefined)
      side.tasks.push({ tenant: input.tenant, id: input.id, keyed: task.key !== null });
    else repeated.add(earlier.id);
    return input;
  });
  const batches = batch === null ? [] : [{ ...batch, id: batchId(side.batches), tenant: BATCH_TENANT }];
  const given = { tasks: inputs, batches, limits, ...toBounds(bounds), ...claiming };
  const answers = await insertOrRefusal(side, given);
  if (typeof answers === "string") return answers;
  const inserted = answers.map(({ seq: _seq, rejection, ...answer }) => {
    // How full the queue was is returned once and not stored.
    const comparable = rejection !== null && repeated.has(answer.id) ? { full: rejection.full } : rejection;
    return { ...answer, rejection: comparable };
  });
  return { inserted, claimed };
}

function toBounds(bounds: CommandBounds | null, tenant = SESSION_TENANT): { bounds?: SubmitBounds } {
  if (bounds === null) return {};
  const { maxDescendants: max, ...others } = bounds;
  const descendants = max === null ? null : { root: "root", max };
  return { bounds: { ...others, tenant, descendants } };
}

async function send(side: Side, command: Extract<Command, { do: "send" }>) {
  const {
    agent,
    lane,
    session: key,
    priority,
    mode,
    maxConcurrent,
    maxSessions,
    cap,
    drop,
    debounceMs,
    steerMs,
    concurrencyKey,
    bounds,
  } = command;
  const id = `task-${side.tasks.length}`;
  const sending = side.storage.sessions.send({
    task: newTask({
      id,
      tenant: SESSION_TENANT,
      agent,
      lane,
      priority,
      origin: "message",
      session: { key, maxConcurrent: 1 },
      concurrencyKey,
      spec: { ...customSpec(null), work: { kind: "message", message: id } },
    }),
    mode,
    maxConcurrent,
    maxSessions,
    steerMs,
    defaults: { mode: "queue", cap, drop, debounceMs },
    ...toBounds(bounds),
  });
  const answer = await orConflict(sending);
  if (typeof answer === "string" || answer.refused !== null) return answer;
  if (!answer.merged) side.tasks.push({ tenant: SESSION_TENANT, id, keyed: false });
  const { task, merged, cancelled } = answer;
  return {
    task: { ...task, seq: null },
    merged,
    cancelled: cancelled.map((each) => comparableEnd(side, each)),
  };
}

async function stopSession(side: Side, command: Extract<Command, { do: "stopSession" }>) {
  const { session: key, scope, limit } = command;
  const answer = await side.storage.sessions.stop({ tenant: SESSION_TENANT, key, scope, limit });
  return {
    stopped: answer.stopped.map((each) => comparableEnd(side, each)),
    cancelled: answer.cancelled.map((each) => comparableEnd(side, each)),
    more: answer.more,
  };
}

async function createSchedule(side: Side, command: Extract<Command, { do: "createSchedule" }>) {
  const { tenant, agent, once, afterMs, deleteAfterRun, maxRuns, pauseAfterFailures, source } = command;
  const now = side.clock.now();
  const rule = once
    ? ({ kind: "once", atMs: now + (afterMs ?? 0), phrase: "once", tz: "UTC" } as const)
    : ({ kind: "every", everyMs: 1_000, tz: "UTC" } as const);
  const schedule = await orConflict(
    side.storage.schedules.create({
      tenant,
      definition: newDefinition({ agent, rule, deleteAfterRun, maxRuns, pauseAfterFailures, anchorAt: now }),
      status: afterMs === null ? "paused" : "active",
      nextFireAt: afterMs === null ? null : now + afterMs,
      source,
      maxSchedules: command.maxSchedules,
    }),
  );
  if (typeof schedule === "string") return schedule;
  side.addSchedule(schedule);
  return side.comparableSchedule(schedule);
}

async function updateSchedule(side: Side, command: Extract<Command, { do: "updateSchedule" }>) {
  const { pick, status, maxRuns, afterMs, stale, unlessDue, maxSchedules } = command;
  const name = side.chooseSchedule(pick);
  const schedule = await side.storage.schedules.get(name);
  const updated = await orConflict(
    side.storage.schedules.update({
      ...name,
      revision: (schedule?.revision ?? 1) - (stale ? 1 : 0),
      changes: {
        work: { kind: "message", message: `after ${afterMs}` },
        maxRuns,
        ...(status === null ? {} : { status }),
        ...(status === "active" ? { nextFireAt: side.clock.now() + afterMs } : {}),
      },
      pauseReason: "asked to",
      unlessDue,
      maxSchedules,
    }),
  );
  return typeof updated === "string" ? updated : updated && side.comparableSchedule(updated);
}

/** The refusal, if a tenant has too many schedules, is a result like any other. */
async function orConflict<Answer>(answer: Promise<Answer>): Promise<Answer | string> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof RotaError && (error.code === "conflict" || error.code === "quota_exceeded"))
      return error.message;
    throw error;
  }
}

async function fire(side: Side, command: Extract<Command, { do: "fire" }>) {
  const fires: Fire[] = [];
  for (const each of command.fires) fires.push(await toFire(side, each));
  const answers = await side.storage.schedules.fire({ fires });
  return answers.map(({ tenant, id: schedule, fired, runs, cancelled }) => {
    side.runs.push(...runs.map(({ id }) => id));
    for (const { task } of runs) if (task !== null) side.tasks.push({ tenant, id: task.id, keyed: false });
    return {
      fired,
      schedule: side.schedules.findIndex(({ id }) => id === schedule),
      runs: runs.map(({ id, task }) => ({ id: side.runs.indexOf(id), task: task && { ...task, seq: null } })),
      cancelled: cancelled.map((each) => comparableEnd(side, each)),
    };
  });
}

async function toFire(side: Side, fired: FiredSchedule): Promise<Fire> {
  const { pick, runs, afterMs, pauses, whileDisabled, stale, waitingMax } = fired;
  const name = side.chooseSchedule(pick);
  const schedule = await side.storage.schedules.get(name);
  return {
    ...name,
    revision: (schedule?.revision ?? 1) - (stale ? 1 : 0),
    runs: runs.toSorted((a, b) => a.dueMs - b.dueMs).map((run) => toNewRun(side, run, schedule)),
    nextFireAt: schedule?.status !== "active" || afterMs === null ? null : side.clock.now() + afterMs,
    pauses: pauses ? "cannot be" : null,
    whileDisabled,
    ...(waitingMax === null ? {} : { waitingMax }),
  };
}

/** Some rows with later due times keep fewer due times. A row that keeps none and started nothing is deleted. */
async function rewind(side: Side, command: Extract<Command, { do: "rewind" }>) {
  const { pick, keeps, afterMs, reopens, stale } = command;
  const name = side.chooseSchedule(pick);
  const schedule = await side.storage.schedules.get(name);
  const rows = await side.storage.schedules.dueRows({ ...name, after: side.clock.now(), limit: 5 });
  const at = schedule?.revision ?? 1;
  const rewound = await side.storage.schedules.rewind({
    ...name,
    revision: (schedule?.revision ?? 1) - (stale ? 1 : 0),
    // Long ago, and different each time.
    missed: keeps > 1 ? [{ firstDueAt: at, dueAt: at, moments: 1, reason: "was before" }] : [],
    rows: rows.map(({ started, ...row }, index) => {
      const moments = started ? 1 : Number(index < keeps);
      return { ...row, firstDueAt: row.dueAt, moments };
    }),
    nextFireAt: side.clock.now() + afterMs,
    reopens: reopens && schedule?.rule.kind === "once" && schedule.status !== "paused",
  });
  return { rewound, rows: rows.map(({ runId: _own, ...row }) => row) };
}

function toNewRun(side: Side, run: FiredRun, schedule: ScheduleRecord | null): NewRun {
  const { status, dueMs, moments, forced, replaces, session, concurrencyKey } = run;
  const dueAt = Math.floor(side.clock.now() / 10) * 10 + dueMs;
  const at = { dueAt, firstDueAt: dueAt - moments + 1, moments, forced };
  if (status === "skipped" || status === "missed") return { ...at, status, reason: `was ${status}` };
  if (status === "failed") return { ...at, status, requestId: "req", error: "no such agent" };
  side.made += 1;
  const task = newTask({
    id: `run-${side.made}`,
    tenant: schedule?.tenant ?? "",
    agent: schedule?.agent ?? "",
    origin: "run",
    schedule: schedule?.id ?? 0,
    session: session === null ? null : { key: session, maxConcurrent: 1 },
    concurrencyKey,
  });
  return { ...at, status, requestId: `req-${side.made}`, task, replaces };
}

async function pruneRuns(side: Side, { retentionMs, limit }: Extract<Command, { do: "pruneRuns" }>) {
  for (let slices = 0; slices < 10_000; slices += 1) {
    if (!(await side.storage.schedules.prune({ retentionMs, limit })).more) return;
  }
  throw new Error("Pruning comes to no end.");
}

function comparableEnd(side: Side, ended: EndedTask) {
  return { ...ended, token: ended.token === null ? null : side.claimOf(ended.token) };
}

/** A batch is refused as a whole if one of its keys was used for another request. */
async function insertOrRefusal(side: Side, params: InsertTasksParams): Promise<InsertedTask[] | string> {
  try {
    return await side.storage.tasks.insert(params);
  } catch (error) {
    const refusals = ["idempotency_conflict", "quota_exceeded"];
    if (error instanceof RotaError && refusals.includes(error.code)) return error.message;
    throw error;
  }
}

function toNewTask(side: Side, submitted: SubmittedTask, id: string): NewTask {
  const {
    repeats,
    runAfterMs,
    deadlineMs,
    dependsOn,
    key,
    session,
    inBatch: _inBatch,
    kind,
    root,
    ...task
  } = submitted;
  const now = side.clock.now();
  const runAt = runAfterMs === null ? null : now + runAfterMs;
  const parents = dependsOn.map((pick) =>
    pick < 0 ? "unknown" : (choose(side.tasks, pick)?.id ?? "unknown"),
  );
  const spec =
    kind === "custom" ? customSpec({}) : { ...customSpec(null), work: { kind, instruction: id } as const };
  return newTask({
    ...task,
    // A repeated insert could be found by its id or by its key: both name the task.
    idempotency: key === null || repeats !== null ? null : { key, hash: task.agent },
    ...(session === null ? {} : { tenant: SESSION_TENANT, session: { key: session, maxConcurrent: 1 } }),
    dependsOn: [...new Set(parents)].filter((parent) => parent !== id),
    id,
    spec: root === null ? spec : { ...spec, within: { taskId: root, rootTaskId: root, depth: 0 } },
    runAt,
    deadline: deadlineMs === null ? null : now + deadlineMs,
  });
}

async function step(side: Side, params: FinishAndClaimParams) {
  return noted(side, await side.storage.tasks.finishAndClaim(params));
}

function noted(side: Side, { finished, claimed, expired, criticalWaits = [] }: FinishedAndClaimed) {
  const ended = finished.map(({ token, state }) => ({ claim: side.claimOf(token), state }));
  side.claims.push(...claimed.map(({ token, task: { seq } }) => ({ seq, token })));
  return { ended, claimed: claimed.map(({ task }) => side.comparableTask(task)), expired, criticalWaits };
}

/** Any attempt, whichever node holds it: both sides must refuse a node that names the attempt of another. */
function toProgress(side: Side, pick: Pick): FinishAndClaimParams["progress"] {
  const claim = side.chooseClaim(pick);
  return claim === undefined ? [] : [{ ...claim, progress: "half way" }];
}

function toBegun(side: Side, begun: Begun): BegunAttempt[] {
  const claim = side.chooseClaim(begun);
  if (claim === undefined) return [];
  return [
    {
      ...claim,
      wave: begun.wave,
      ...(begun.agoMs !== null && { startedAt: side.clock.now() - begun.agoMs }),
    },
  ];
}

function toFinish(side: Side, finish: Finish): FinishAndClaimParams["finishes"] {
  const claim = side.chooseClaim(finish);
  if (claim === undefined) return [];
  const { inputTokens } = finish;
  const end = { ...claim, settlement: toSettlement(side, finish), summary: `after ${finish.afterMs}` };
  if (inputTokens === null) return [end];
  const usage = { inputTokens, outputTokens: 1, contextWindow: 1_000, contextTokens: inputTokens * 7 };
  return [{ ...end, usage }];
}

function toSettlement(side: Side, { to, afterMs }: Finish): Settlement {
  if (to === "done") return { to, result: { afterMs } };
  if (to === "delayed") return { to, error: "try again", runAt: side.clock.now() + afterMs };
  return { to, error: `was ${to}` };
}

async function cancel(side: Side, { tenant, picks, error }: Extract<Command, { do: "cancel" }>) {
  const ids = picks.map((pick) => choose(side.tasks, pick)?.id ?? "unknown");
  const answers = await side.storage.tasks.cancel({ tenant, ids, error });
  return answers.map((answer) =>
    "token" in answer && answer.token !== null ? { ...answer, token: side.claimOf(answer.token) } : answer,
  );
}

async function bulk(side: Side, { tenant, action, picks, agoMs }: Extract<Command, { do: "bulk" }>) {
  const { bulks } = side.storage;
  const name = { tenant, id: `bulk of ${tenant}` };
  const ids = [...new Set(picks.map((pick) => choose(side.tasks, pick)?.id ?? "unknown"))];
  const requestedAt = (await side.storage.now()) - agoMs;
  const none = { filter: null, selection: null, by: null };
  const bounds = { limit: 10, matched: ids.length, lastSeq: 0, cursor: 0, runningMax: 1, keptMax: 0 };
  await bulks.add({ ...name, ...none, ...bounds, action, ids, requestedAt });
  const stepped = await bulks.step({ ...name, cursor: 0, next: null, ids });
  return {
    bulk: stepped?.bulk,
    cancelled: stepped?.cancelled
      .map((each) => comparableEnd(side, each))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
  };
}

async function crash(side: Side, node: number): Promise<boolean> {
  const name = side.nodes[node] ?? "";
  const beat = (await side.storage.nodes.list()).find((record) => record.node === name)?.beat ?? -1;
  const died = await side.storage.nodes.markDead({ node: name, beat });
  side.crashed.push(name);
  await side.startNode(node);
  return died;
}

/** Then removes the node, as the engine does. That does nothing while the node still holds tasks. */
async function rescue(
  side: Side,
  node: string,
  { limit, maxLost }: { limit: number; maxLost: number | null },
) {
  const answer = await side.storage.tasks.rescue({ node, limit, ...(maxLost !== null && { maxLost }) });
  await side.storage.nodes.remove({ node });
  return answer;
}

async function loseTwice(side: Side, { node, limit }: Extract<Command, { do: "loseTwice" }>) {
  const answers: unknown[] = [];
  for (let time = 0; time < 2; time += 1) {
    const name = side.nodes[node] ?? "";
    const claims = ["tasks", "main"].map((lane) => ({ lane, limit }));
    answers.push(await step(side, { node: name, finishes: [], progress: [], claims }));
    answers.push(await crash(side, node));
    answers.push(await rescue(side, name, { limit: 100, maxLost: 9 }));
  }
  return answers;
}

/** Adds so many tenants that drivers may search them in another way. Once in a sequence is enough. */
async function crowd(side: Side, lane: string) {
  if (side.hasManyTenants) return undefined;
  side.hasManyTenants = true;
  const tasks = Array.from({ length: 40 }, (_, n) =>
    newTask({ id: `crowd-${n}`, tenant: `crowd-${n}`, agent: "a", lane }),
  );
  const limits = { maxQueueSize: 1_000, maxQueueSizeTotal: 10_000, maxPerAgent: 1_000 };
  const answers = await side.storage.tasks.insert({ tasks, limits });
  return answers.map(({ state }) => state);
}

/** Deletes all slices, because the order of deletion is not defined. */
async function deleteTenant(side: Side, { tenant: id, limit }: Extract<Command, { do: "deleteTenant" }>) {
  for (let slices = 0; slices < 10_000; slices += 1) {
    const answer = await side.storage.tenants.delete({ id, limit });
    if (!("more" in answer) || !answer.more) return answer;
  }
  throw new Error("Deleting comes to no end.");
}

/** Prunes all slices, because the order between tenants is not defined. */
async function prune(side: Side, command: Extract<Command, { do: "prune" }>): Promise<number> {
  const { retentionMs, rejectedMax, limit } = command;
  let deleted = 0;
  for (let slices = 0; slices < 10_000; slices += 1) {
    const { tasks, more } = await side.storage.tasks.prune({ retentionMs, rejectedMax, limit });
    deleted += tasks;
    if (!more) return deleted;
  }
  throw new Error("Pruning comes to no end.");
}

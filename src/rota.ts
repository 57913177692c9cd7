import { hostname } from "node:os";
import { systemClock } from "./clock/system-clock.ts";
import { type Environment, processEnvironment } from "./config/process-environment.ts";
import { Engine } from "./engine/engine.ts";
import { idMaker, nodeIdMaker } from "./engine/work/new-id.ts";
import { POLLS_MAX } from "./engine/workers/worker-polls.ts";
import { EventLog } from "./events/event-log.ts";
import { NotificationLog } from "./events/notification-log.ts";
import type { Executor } from "./executors/executor.ts";
import type { Keys } from "./interface/keys.ts";
import type { RotaOptions } from "./interface/options.ts";
import type { Rota } from "./interface/rota.ts";
import { LocalRota } from "./library/local-rota.ts";
import { OneAtATime } from "./library/one-at-a-time.ts";
import { AgentBounds } from "./library/registries/agent-bounds.ts";
import { AgentCatalogue } from "./library/registries/agent-catalogue.ts";
import { AgentTable } from "./library/registries/agent-table.ts";
import { LaneCatalogue } from "./library/registries/lane-catalogue.ts";
import { LaneTable } from "./library/registries/lane-table.ts";
import { SECRET_KEY_VARIABLE, SecretBox } from "./library/registries/secret-box.ts";
import { TenantCatalogue } from "./library/registries/tenant-catalogue.ts";
import { TenantSigner } from "./library/registries/tenant-signer.ts";
import { Access } from "./library/resources/access.ts";
import { postingAnswers } from "./library/resources/posted-answers.ts";
import { refusingWrits } from "./library/resources/refused-writs.ts";
import { StoredQuota } from "./library/resources/stored-quota.ts";
import { CurrentGuard } from "./library/settings/current-guard.ts";
import { CurrentSettings } from "./library/settings/current-settings.ts";
import { redactedLog } from "./library/settings/redacted-log.ts";
import { Reloader } from "./library/settings/reloader.ts";
import { resolveSettings, type Settings } from "./library/settings/settings.ts";
import { taskActions } from "./library/task-actions.ts";
import { TaskTokens } from "./library/task-tokens.ts";
import { RequestMetrics } from "./metrics/request-metrics.ts";
import { WebhookMetrics } from "./metrics/webhook-metrics.ts";
import type { Clock } from "./model/clock.ts";
import { invalidField } from "./model/input/field-checks.ts";
import { asLog, type Log, silentLog } from "./model/log.ts";
import { parseStorageUrl, STORAGE_FORMS } from "./model/storage-url.ts";
import { StorageClock } from "./services/storage-clock.ts";
import { WorkTurns } from "./services/work-turns.ts";
import type { Storage } from "./storage/storage.ts";
import { checkNode, VERSION } from "./version.ts";
import { Deliverer } from "./webhooks/deliverer.ts";

/** When one of these options changes, executors of stored agents are made again: their allowed targets have changed. */
const TARGET_PATHS = ["outbound.allow", "outbound.deny", "webhooks.allow"];

/**
 * Opens the storage and creates a scheduler on it. Tasks can be submitted right away; `start()` begins to run them.
 *
 * @example
 * const rota = await createRota({ storage: "sqlite::memory:" });
 * rota.agent("greeter", async (task) => `Hello, ${task.message}!`);
 * await rota.start();
 * const { taskId } = await rota.tasks.submit({ agentId: "greeter", message: "world" });
 * console.log((await rota.tasks.wait(taskId)).result); // Hello, world!
 * await rota.stop();
 */
export async function createRota(options: RotaOptions = {}): Promise<Rota> {
  const { clock = systemClock, log: given = silentLog } = options;
  const log = asLog(given);
  const environment = processEnvironment();
  const settings = resolveSettings(options, { clock, environment });
  const { storageWaitMs: waitMs } = settings;
  const storage = await openStorage(settings.options.storage, { clock, waitMs, log });
  try {
    return await joinRota({ options, settings, storage, environment });
  } catch (error) {
    await storage.close();
    throw error;
  }
}

/** Throws what `createRota` would throw at these options, before it opens the storage. */
export function checkOptions(options: RotaOptions): void {
  const environment = processEnvironment();
  resolveSettings(options, { clock: options.clock ?? systemClock, environment });
  new SecretBox(environment[SECRET_KEY_VARIABLE]);
}

export interface RotaParts {
  readonly options: RotaOptions;
  readonly settings: Settings;
  readonly storage: Storage;
  /** The environment variables that the configuration of executors may name; left out: none. */
  readonly environment?: Environment;
}

/** Joins all parts around a storage. */
export async function joinRota({ options, settings, storage, environment = {} }: RotaParts): Promise<Rota> {
  const { clock = systemClock, random = Math.random } = options;
  const current = new CurrentSettings(settings);
  const redactor = () => current.value.redactor;
  const log = redactedLog(asLog(options.log ?? silentLog), redactor);
  const storageClock = new StorageClock({ clock, storage });
  await storageClock.sync();
  const service = { clock, random, log };
  const executorDependencies = { clock, environment };
  const turns = new OneAtATime();
  const laneTurns = new OneAtATime();
  const lanes = new LaneTable(current);
  const laneCatalogue = new LaneCatalogue({
    ...service,
    storage,
    current,
    table: lanes,
    turns: laneTurns,
    onChanged: () => engine.settingsChanged(),
  });
  // Before anything else: tasks can be submitted as soon as this function returns.
  await laneCatalogue.open();
  const guard = new CurrentGuard({ targets: () => current.value.outbound, clock });
  const withWrits = (executor: Executor, tenant: string) => rota.tenant(tenant).writAnswers.after(executor);
  const withoutWrits = refusingWrits(log);
  const box = new SecretBox(environment[SECRET_KEY_VARIABLE]);
  const agents = new AgentTable({
    current,
    executorDependencies,
    keyIds: box.keyIds,
    withWrits,
    withoutWrits,
    posting: postingAnswers({ storage, maxConcurrent: () => current.value.sessions.maxConcurrent }),
    log,
  });
  const requestMetrics = new RequestMetrics();
  const tenants = new TenantCatalogue({
    ...service,
    storage,
    box,
    onAdded: (id) => bounds.tenantAdded(id),
    onGone: (id) => {
      engine.metrics.forget(id);
      requestMetrics.forget(id);
    },
  });
  const bounds = new AgentBounds({ storage, agents, tenants: () => tenants.ids(), turns, log });
  await tenants.read();
  const quota = new StoredQuota({
    storage,
    maxStoredBytes: (id) => tenants.limitsOf(id)?.maxStoredBytes ?? null,
  });
  const catalogue = new AgentCatalogue({
    ...service,
    storage,
    agents,
    bounds,
    guard: () => guard.value,
    box,
  });
  await catalogue.read();
  const onRestored = () => rota.storageRestored();
  const eventLog = new EventLog({ storage, redactor, clock, log, onRestored });
  const notificationLog = new NotificationLog({ storage, redactor, clock, log, onRestored });
  const webhookMetrics = new WebhookMetrics({ inFlight: () => deliverer.inFlight });
  const access = new Access({
    ...service,
    storage,
    storageClock,
    auditRetentionMs: () => current.value.auditRetentionMs,
    node: () => engine.node,
  });
  const signer = new TenantSigner({
    secretsOf: (tenant) => tenants.webhookSecretsOf(tenant),
    configuredKey: () => current.value.webhookKey,
    now: () => storageClock.now(),
  });
  signer.warnOfConfigured(tenants.ids(), log);
  const deliverer = new Deliverer({
    ...service,
    storage,
    storageClock,
    guard: () => guard.value,
    sign: (tenant, content) => signer.sign(tenant, content),
    redactor,
    version: VERSION,
    onResult: (result) => webhookMetrics.tried(result),
  });
  const tokens = await TaskTokens.open({
    storage,
    clock,
    storageNow: () => storageClock.now(),
    delegatesOf: (name) => agents.find(name)?.agent.delegates ?? [],
  });
  const actionsOf = taskActions({ tokens, tenant: (id, access) => rota.tenant(id, access) });
  const engine = new Engine({
    storage,
    storageClock,
    clock,
    random,
    log,
    newNodeId: nodeIdMaker(hostname(), process.pid),
    version: VERSION,
    maxLaneShare: () => current.value.options.tenants.maxLaneShare,
    hasSecondTenant: () => tenants.hasSecond,
    maxFiresPerSec: () => current.value.options.tenants.maxFiresPerSec || null,
    isFollowed: () => eventLog.isFollowed,
    concurrency: () =>
      Object.fromEntries([...lanes.lanes.values()].map(({ name, concurrency }) => [name, concurrency])),
    limits: () => current.value.limits,
    retentionMs: () => current.value.resultTTLSec(storage.capabilities) * 1_000,
    runRetentionMs: () => current.value.runRetentionMs,
    runs: {
      newTaskId: idMaker("tsk_", clock),
      newRequestId: idMaker("req_", clock),
      defaults: () => {
        const { timeoutMs, sessions } = current.value;
        const hasLane = (lane: string) => lanes.lanes.has(lane);
        return { timeoutMs, sessionMaxConcurrent: sessions.maxConcurrent, hasLane };
      },
      // A known agent is not looked up at every due time: a signal soon reports that another node deleted it.
      hasAgent: (name) => agents.find(name) !== undefined || catalogue.isKnown(name),
      isDisabled: (id) => tenants.isDisabled(id),
      isFull: (id) => quota.isFull(id),
    },
    findExecutor: (record) => catalogue.executorFor(record),
    abilities: () => agents.abilities(),
    noExecutorMs: () => current.value.scheduler.noExecutorSec * 1_000,
    maxRunningBytes: () => current.value.scheduler.maxRunningBytes,
    maxLost: () => current.value.scheduler.maxLost,
    contextWindow: (record) => agents.contextWindow(record),
    redactor,
    sign: (tenant, content, options) => signer.sign(tenant, content, options),
    taskTokens: {
      sign: (record, fence) => tokens.sign(record, fence),
      isSent: (record) => agents.find(record)?.agent.taskToken ?? false,
      actionsOf,
    },
    spansLanes: (name) =>
      agents.maxInflight(name) !== null || (tenants.limitsOf(name.tenant)?.maxInflight ?? null) !== null,
    onEnded: () => deliverer.wake(),
    // One tenant must not take all of them.
    tenantPollsMax: () =>
      tenants.hasSecond ? POLLS_MAX * current.value.options.tenants.maxLaneShare : POLLS_MAX,
    agentsVersion: () => agents.version,
    processResult: (record, result) => agents.resultOf(record, result),
  });
  const reloader = new Reloader({
    current,
    lanes,
    laneTurns,
    agents,
    tenants: () => tenants.ids(),
    storage,
    engine,
    turns,
    executorDependencies,
    log,
    onChanged: (paths) => {
      if (paths.some((path) => TARGET_PATHS.includes(path))) catalogue.rebuild();
    },
  });
  const rota = new LocalRota({
    ...service,
    current,
    storage,
    storageClock,
    lanes,
    laneCatalogue,
    agents,
    bounds,
    catalogue,
    tenants,
    guard,
    box,
    turns,
    reloader,
    engine,
    eventLog,
    notificationLog,
    deliverer,
    webhookMetrics,
    requestMetrics,
    work: new WorkTurns(),
    quota,
    access,
    tokens,
    estimateTokens: options.estimateTokens,
  });
  return rota;
}

/** API keys and the audit log, without the rest of a Rota. */
export interface OpenedAccess extends Pick<Rota, "audit"> {
  readonly keys: Keys;
  close(): Promise<void>;
}

/** Opens a storage only to manage its keys: reads no configuration and runs nothing. */
export async function openAccess(url: string): Promise<OpenedAccess> {
  const clock = systemClock;
  const storage = await openStorage(url, { clock, waitMs: 0, log: silentLog });
  const storageClock = new StorageClock({ clock, storage });
  await storageClock.sync();
  const service = { clock, random: Math.random, log: silentLog };
  // Nodes delete old entries of the audit log: only they know the configured retention.
  const auditRetentionMs = () => Number.MAX_SAFE_INTEGER;
  const node = nodeIdMaker(hostname(), process.pid)();
  const access = new Access({ ...service, storage, storageClock, auditRetentionMs, node: () => node });
  return {
    keys: access.keys,
    audit: access.audit,
    async close() {
      await access.close();
      await storage.close();
    },
  };
}

interface OpenParams {
  readonly clock: Clock;
  /** How long to wait for a database that is not up yet. */
  readonly waitMs: number;
  readonly log: Log;
}

/** Opens the storage that a URL names. Loads only the driver that it needs, so that the other's library may be missing. */
async function openStorage(url: string, { clock, waitMs, log }: OpenParams): Promise<Storage> {
  checkNode();
  const storage = parseStorageUrl(url);
  switch (storage?.driver) {
    case "sqlite": {
      const { openSqlite } = await import("./storage/sqlite/connection/open.ts");
      const onLooseFiles = (files: readonly string[]) =>
        log.warn(
          { files },
          `other users of this machine can read what Rota keeps: chmod 600 ${files.join(" ")}`,
        );
      return openSqlite({ path: storage.path, clock, onLooseFiles });
    }
    case "postgres": {
      const { openPostgres } = await import("./storage/postgres/connection/open.ts");
      const onWait = (reason: string) =>
        log.warn(
          { reason, waitSec: waitMs / 1_000 },
          "PostgreSQL is not up yet: trying again for `waitSec` seconds",
        );
      return openPostgres({ url: storage.url, waitMs, onWait, warmUp: true });
    }
    case undefined:
      // The value is not repeated: it may hold a password.
      throw invalidField("storage", `\`storage\` must be ${STORAGE_FORMS}`);
  }
}

import type { DoctorCheck, DoctorProgress, DoctorReport } from "../../interface/doctor.ts";
import type { Health } from "../../interface/rota.ts";
import type { Clock } from "../../model/clock.ts";
import { workerState } from "../../model/worker.ts";
import type { Storage } from "../../storage/storage.ts";
import { checkAuditChains } from "../../tenants/check-audit-chains.ts";
import { examineLanes } from "./examine-lanes.ts";
import { examineRollups } from "./examine-rollups.ts";
import { examineSchedules } from "./examine-schedules.ts";

/** A larger difference between the clocks is reported: due times follow the clock of the storage. */
const SKEW_MAX_MS = 1_000;
/** The most findings of one check. */
const FINDINGS_MAX = 100;

export interface ExamineOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly config: () => Health["config"];
  readonly runRetentionMs: () => number;
  /** Whether this node fires schedules right now. */
  readonly fires: () => boolean;
  /** Whether this node knows a lane. */
  readonly hasLane: (lane: string) => boolean;
  /** Ends the examination, which then throws its reason. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: DoctorProgress) => void;
}

/** Returns the report for a tenant. Of other tenants it says only that something is wrong, and no details. */
export type Examined = (tenant: string) => DoctorReport;

/** Looks for inconsistent data, in slices between which other work continues. Changes nothing. */
export async function examine(options: ExamineOptions): Promise<Examined> {
  const { storage, clock, config } = options;
  const asked = clock.now();
  const storageNow = await storage.now();
  const answered = clock.now();
  const before = [
    check("storage", "The storage responds.", []),
    checkClock(skew(storageNow, { asked, answered })),
    await checkCounters(options),
  ];
  const ofSchedules = await checkSchedules(options, storageNow);
  const ofRollups = await checkRollups(options, storageNow);
  const ofAudit = await checkAudit(options);
  const ofWorkers = await checkWorkers(options, storageNow);
  const ofLanes = await checkLanes(options);
  return (tenant) => {
    const checks = [
      ...before,
      ofSchedules(tenant),
      ofRollups(tenant),
      ofAudit,
      ofWorkers(tenant),
      ofLanes(tenant),
      checkConfig(config()),
    ];
    return { ok: checks.every(({ ok }) => ok), checks };
  };
}

/** Workers that should do something and do not. Those of other tenants are their own affair. */
async function checkWorkers(
  { storage }: ExamineOptions,
  now: number,
): Promise<(tenant: string) => DoctorCheck> {
  const { workers } = await storage.workers.watch();
  return (tenant) => {
    const findings = workers
      .filter((worker) => worker.tenant === tenant)
      .flatMap((worker) => {
        const { worker: id, name, held } = worker;
        const state = workerState(worker, now);
        if (state === "not_polling")
          return `The worker "${name}" (${id}) gives signs of life, but no longer asks for tasks although it has free slots: restart it.`;
        if (state === "lost" && held > 0)
          return `The worker "${name}" (${id}) is lost and still holds ${held} tasks: they should have gone back within seconds.`;
        return [];
      });
    return check("workers", "Every worker asks for tasks.", findings);
  };
}

/** Yields to other work, and ends the examination if its signal has fired. */
async function nextSlice({ signal, onProgress }: ExamineOptions, progress: DoctorProgress): Promise<void> {
  signal.throwIfAborted();
  onProgress(progress);
  await new Promise((resolve) => setImmediate(resolve));
  signal.throwIfAborted();
}

function check(name: string, well: string, findings: readonly string[]): DoctorCheck {
  const ok = findings.length === 0;
  const found = findings.length === 1 ? "1 thing is wrong." : `${findings.length} things are wrong.`;
  return { name, ok, summary: ok ? well : found, findings: findings.slice(0, FINDINGS_MAX) };
}

/** The storage read its clock at some time between request and response: only a time outside of that interval is skew. */
function skew(storageNow: number, { asked, answered }: { asked: number; answered: number }): number {
  return storageNow < asked ? storageNow - asked : Math.max(storageNow - answered, 0);
}

function checkClock(skewMs: number): DoctorCheck {
  const size = Math.round(Math.abs(skewMs));
  const finding = `The storage's clock is ${size} ms ${skewMs > 0 ? "ahead of" : "behind"} this machine's: schedules follow the storage's clock.`;
  return check("clock", "The clocks agree.", size > SKEW_MAX_MS ? [finding] : []);
}

async function checkCounters(options: ExamineOptions): Promise<DoctorCheck> {
  const faults = await options.storage.counters.recountAll({
    onSlice: ({ rows, rowsTotal }) => nextSlice(options, { check: "counters", done: rows, total: rowsTotal }),
  });
  return check(
    "counters",
    "Every counter equals its rows.",
    faults.map(({ counter, stored, counted }) => `${counter} says ${stored}, and the rows say ${counted}.`),
  );
}

async function checkSchedules(
  options: ExamineOptions,
  now: number,
): Promise<(tenant: string) => DoctorCheck> {
  const { storage, runRetentionMs, fires } = options;
  let schedules = 0;
  let moments = 0;
  let looked = 0;
  const found = new Map<string, readonly string[]>();
  const onSlice = (more: number) => {
    looked += more;
    return nextSlice(options, { check: "schedules", done: looked, total: null });
  };
  for (const { id, disabled } of await storage.tenants.list()) {
    const common = { storage, now, runRetentionMs: runRetentionMs(), fires: fires(), onSlice };
    const examined = await examineSchedules({ ...common, tenant: id, disabled });
    schedules += examined.schedules;
    moments += examined.moments;
    if (examined.findings.length > 0) found.set(id, examined.findings);
  }
  const well =
    schedules === 0
      ? "There are no schedules."
      : `Every due time has its run: ${moments} since the last change of ${schedules === 1 ? "1 schedule" : `${schedules} schedules`}.`;
  return (tenant) => {
    const findings = [...found].flatMap(([id, own]) => (id === tenant ? own : [ofAnother(id, own.length)]));
    return check("schedules", well, findings);
  };
}

async function checkAudit(options: ExamineOptions): Promise<DoctorCheck> {
  const onSlice = (done: number) => nextSlice(options, { check: "audit", done, total: null });
  const { chains, entries, findings } = await checkAuditChains(options.storage, onSlice);
  const well =
    chains === 0
      ? "The audit log has no entries to check."
      : `No entry of the audit log was changed or removed: ${counted(entries, "entry", "entries")} in ${counted(chains, "chain", "chains")}.`;
  return check("audit", well, findings);
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

function ofAnother(tenant: string, found: number): string {
  const things = found === 1 ? "1 thing is" : `${found} things are`;
  return `Tenant ${tenant}: ${things} wrong with its schedules.`;
}

async function checkRollups(options: ExamineOptions, now: number): Promise<(tenant: string) => DoctorCheck> {
  const { storage, fires } = options;
  const tenants = (await storage.tenants.list()).map(({ id }) => id);
  let looked = 0;
  const onSlice = (rows: number) => {
    looked += rows;
    return nextSlice(options, { check: "rollups", done: looked, total: null });
  };
  const { ofAll, ofTenants } = await examineRollups({ storage, tenants, now, counts: fires(), onSlice });
  return (tenant) => {
    const findings = [...ofTenants].map(([id, found]) =>
      id === tenant ? found : `Tenant ${id}: its statistics over time do not add up.`,
    );
    return check("rollups", "The statistics over time are complete and add up.", [...ofAll, ...findings]);
  };
}

async function checkLanes(options: ExamineOptions): Promise<(tenant: string) => DoctorCheck> {
  const { storage, hasLane } = options;
  let looked = 0;
  const onSlice = (schedules: number) => {
    looked += schedules;
    return nextSlice(options, { check: "lanes", done: looked, total: null });
  };
  const found = await examineLanes({ storage, hasLane, onSlice });
  return (tenant) => {
    const findings = [...found].flatMap(([id, own]) =>
      id === tenant
        ? own
        : [`Tenant ${id}: ${own.length} of its agents and schedules name lanes that do not exist.`],
    );
    return check("lanes", "Every lane that agents and schedules name exists.", findings);
  };
}

function checkConfig(config: Health["config"]): DoctorCheck {
  return check("config", "The configuration is valid.", config.ok ? [] : [config.error]);
}

import {
  type BoundName,
  type Bounds,
  DEFAULT_BOUNDS,
  type EffectiveBounds,
  effectiveBounds,
  stricterBounds,
} from "../model/bounds.ts";
import { RotaError } from "../model/errors.ts";
import { invalidField } from "../model/input/field-checks.ts";
import type { Provenance } from "../model/provenance.ts";
import type { Rule } from "../model/rule.ts";
import { rfc3339 } from "../model/text/rfc3339.ts";
import { nextMoments } from "../schedules/moments.ts";
import { wallAt } from "../schedules/zone.ts";
import type { MakerLimit, NewTask, Storage, SubmitBounds } from "../storage/storage.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** How many due times are compared: in this many, a cron expression has shown its shortest interval. */
const STEPS_LOOKED_AT = 100;
/** How many tasks an error about the depth of a tree names. */
const CHAIN_NAMED = 10;

export interface CallerBoundsOptions {
  readonly tenant: string;
  readonly provenance: Provenance;
  /** The bounds of the key; undefined: it has none of its own, or there is no key. */
  readonly ofKey: Bounds | undefined;
  /** The bounds of an API key beside a task token; undefined: there is none, or it has none of its own. */
  readonly ofKeyBeside: Bounds | undefined;
  readonly ofAgent: (agent: string) => Bounds | undefined;
  readonly configured: () => Bounds;
  readonly storage: Storage;
  readonly now: () => number;
}

/** What one caller may make: the bounds of its key, else of its agent, else of the configuration. */
export class CallerBounds {
  readonly #options: CallerBoundsOptions;

  constructor(options: CallerBoundsOptions) {
    this.#options = options;
  }

  /** Checks new tasks. Returns what the storage has to count; undefined: nothing. Throws `too_deep`, `invalid_field`. */
  async forTasks(tasks: readonly Pick<NewTask, "runAt">[]): Promise<SubmitBounds | undefined> {
    const bounds = this.#bounds();
    if (bounds === null) return undefined;
    const { tenant, provenance } = this.#options;
    await this.#checkDepth(bounds.maxDepth);
    for (const { runAt } of tasks) if (runAt !== null) this.#checkHorizon("runAt", runAt, bounds);
    const { maxSubmitsPerHour, maxOpenTasks, maxDescendants: max } = bounds;
    const root = provenance.within?.rootTaskId;
    const descendants = root === undefined || max === null ? null : { root, max };
    if (maxSubmitsPerHour === null && maxOpenTasks === null && descendants === null) return undefined;
    return { tenant, owner: this.#owner(), maxSubmitsPerHour, maxOpenTasks, descendants };
  }

  /** What the storage has to count for a task that is retried, or a run that the caller asks for; undefined: nothing. */
  forRunAgain(): SubmitBounds | undefined {
    const { maxSubmitsPerHour = null, maxOpenTasks = null } = this.#bounds() ?? {};
    if (maxSubmitsPerHour === null && maxOpenTasks === null) return undefined;
    const { tenant } = this.#options;
    return { tenant, owner: this.#owner(), maxSubmitsPerHour, maxOpenTasks, descendants: null };
  }

  /** Throws `forbidden` for a retry of many tasks at once, which the storage cannot count. */
  checkRetriesOfMany(): void {
    if (this.forRunAgain() === undefined) return;
    throw new RotaError(
      "forbidden",
      "a bulk retry cannot be counted against `maxSubmitsPerHour` and `maxOpenTasks`: retry the tasks one by one",
    );
  }

  /**
   * Checks the rule of a schedule, and returns until when it may last. `phrase`: the schedule as the caller wrote it; `agent`: the agent whose
   * writ this is. Throws `interval_too_short`, `invalid_field`.
   */
  checkSchedule(
    { rule, untilAt }: { readonly rule: Rule; readonly untilAt: number | null },
    { agent, phrase }: { readonly agent?: string | undefined; readonly phrase: string },
  ): { readonly untilAt: number | null } {
    const bounds = this.#bounds(agent);
    if (bounds === null) return { untilAt };
    const now = this.#options.now();
    if (rule.kind === "once") {
      this.#checkHorizon("schedule", rule.atMs, bounds);
      return { untilAt };
    }
    if (bounds.minIntervalS !== null) checkInterval(rule, { now, minS: bounds.minIntervalS, phrase });
    const { scheduleTtlDays: days } = bounds;
    if (days === null) return { untilAt };
    return { untilAt: Math.min(untilAt ?? Number.POSITIVE_INFINITY, now + days * DAY_MS) };
  }

  /** How many schedules its maker may have; undefined: any number. */
  scheduleLimit(agent?: string): MakerLimit | undefined {
    const max = this.#bounds(agent)?.maxActiveSchedules ?? null;
    if (max === null) return undefined;
    const { provenance, tenant } = this.#options;
    const { keyId, agentId: own } = provenance.createdBy;
    const agentId = own ?? agent;
    if (keyId !== null && (this.#hasOwn() || agentId === undefined)) return { by: "key", id: keyId, max };
    return agentId === undefined ? { by: "tenant", id: tenant, max } : { by: "agent", id: agentId, max };
  }

  /** Null: none applies. `agent`: the agent whose writ this is. */
  #bounds(agent?: string): EffectiveBounds | null {
    const { provenance, ofKey, ofKeyBeside, ofAgent, configured } = this.#options;
    const { via, agentId } = provenance.createdBy;
    // The program that embeds Rota may do anything.
    if (via === "library" && provenance.within === null) return null;
    const named = agentId ?? agent;
    // Of a writ, only what is set.
    const hasDefaults = via === "mcp" || (provenance.within !== null && via !== "writ");
    const common = [
      named === undefined ? undefined : ofAgent(named),
      configured(),
      hasDefaults ? DEFAULT_BOUNDS : undefined,
    ];
    const isSet = (level: Bounds | undefined) => level !== undefined && Object.keys(level).length > 0;
    if (![ofKey, ofKeyBeside, ...common].some(isSet)) return null;
    const own = effectiveBounds([ofKey, ...common]);
    return ofKeyBeside === undefined ? own : stricterBounds(own, effectiveBounds([ofKeyBeside, ...common]));
  }

  /** Whether a key of the caller has bounds of its own, so that it is counted by itself. */
  #hasOwn(): boolean {
    const { ofKey, ofKeyBeside } = this.#options;
    return ofKey !== undefined || ofKeyBeside !== undefined;
  }

  /** What submits are counted for. */
  #owner(): string {
    const { keyId, agentId } = this.#options.provenance.createdBy;
    if (keyId !== null && (this.#hasOwn() || agentId === null)) return keyId;
    return agentId === null ? "no key" : `agent ${agentId}`;
  }

  #checkHorizon(field: "runAt" | "schedule", at: number, { horizonDays: days }: EffectiveBounds): void {
    if (days === null) return;
    const latest = this.#options.now() + days * DAY_MS;
    if (at <= latest) return;
    throw invalidField(
      field,
      `\`${field}\` is more than ${days} days ahead, which is the most for this caller (\`horizonDays\`): write ${rfc3339(latest)} or earlier`,
    );
  }

  async #checkDepth(maxDepth: number | null): Promise<void> {
    const { within } = this.#options.provenance;
    if (maxDepth === null || within === null || within.depth < maxDepth) return;
    const chain = await this.#chain(within.taskId);
    throw new RotaError(
      "too_deep",
      `this task would have ${within.depth + 1} tasks above it, and ${maxDepth} is the most for this caller (\`maxDepth\`): ${chain.join(" → ")}; do the work in the task itself`,
      { details: { bound: "maxDepth" satisfies BoundName, max: maxDepth, chain } },
    );
  }

  /** The tasks above a new one, from the first that is named on. */
  async #chain(taskId: string): Promise<string[]> {
    const { storage, tenant } = this.#options;
    const chain: string[] = [];
    for (let id: string | undefined = taskId; id !== undefined && chain.length < CHAIN_NAMED; ) {
      chain.unshift(id);
      const record: { readonly spec: NewTask["spec"] } | null = await storage.tasks.get({ tenant, id });
      id = record?.spec.within?.taskId;
    }
    return chain;
  }
}

function checkInterval(
  rule: Rule,
  { now, minS, phrase }: { readonly now: number; readonly minS: number; readonly phrase: string },
): void {
  const moments = nextMoments(rule, { after: now, anchor: now, limit: STEPS_LOOKED_AT });
  // A clock change makes a day shorter or longer by an hour: by elapsed time, or on the clock.
  const steps = moments.slice(1).map((moment, index) => {
    const before = moments[index] ?? moment;
    return Math.max(moment - before, wallAt(rule.tz, moment) - wallAt(rule.tz, before));
  });
  const shortest = Math.min(...steps);
  if (shortest >= minS * 1_000) return;
  throw new RotaError(
    "interval_too_short",
    `"${phrase}" is due every ${shortest / 1_000} seconds, and ${minS} is the shortest interval for this caller (\`minIntervalS\`): write "${everyPhrase(minS)}"`,
    { details: { field: "schedule", bound: "minIntervalS" satisfies BoundName, min: minS } },
  );
}

/** The shortest phrase that is allowed. */
function everyPhrase(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  if (minutes === 1) return "every minute";
  return minutes % 60 === 0
    ? `every ${minutes / 60} hours`.replace("every 1 hours", "every hour")
    : `every ${minutes} minutes`;
}

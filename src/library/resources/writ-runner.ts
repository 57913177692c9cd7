import { RotaError } from "../../model/errors.ts";
import type { Log } from "../../model/log.ts";
import type { Provenance } from "../../model/provenance.ts";
import type { ScheduleWork } from "../../model/schedule.ts";
import { canonicalForm } from "../../schedules/canonical-form.ts";
import { minuteText } from "../../schedules/moment-text.ts";
import type { CreateWrit, InvalidWrit, OrderWrit, Writ } from "../../schedules/writ.ts";
import {
  doneBlock,
  errorBlock,
  type ListedSchedule,
  listBlock,
  misunderstoodBlock,
  NOT_RUNNING,
  noSchedule,
  scheduledBlock,
} from "../../schedules/writ-answer.ts";
import { localZone } from "../../schedules/zone.ts";
import { SCHEDULE_PAGE_BYTES, type ScheduleRecord, type Storage } from "../../storage/storage.ts";
import type { WrittenSchedules } from "./schedules.ts";

/** The most schedules listed of each status. More would fill an agent's context. */
const LISTED_MAX = 100;

export interface WritRunnerOptions {
  readonly tenant: string;
  readonly storage: Storage;
  readonly schedules: WrittenSchedules;
  readonly log: Log;
}

export interface CarriedOut {
  readonly ok: boolean;
  /** The reply to the agent. */
  readonly block: string;
}

/** The agent for which a writ is carried out. */
export interface Bearer {
  readonly agent: string;
  /** The session and the conversation of the writ, which new schedules get as well; null: none. */
  readonly sessionKey: string | null;
  readonly conversationId: string | null;
  /** Identifies the origin of a new schedule, so that a repeated writ does not create it twice. */
  readonly source?: string;
  /** Whose schedules these are. Left out: the caller's. */
  readonly provenance?: Provenance;
  /** Throws for a new schedule that the agent must not create. */
  readonly check?: (writ: CreateWrit) => Promise<void>;
}

/** Carries out writs for an agent. They can do what a caller can do with schedules, but only with the agent's own. */
export class WritRunner {
  readonly #options: WritRunnerOptions;

  constructor(options: WritRunnerOptions) {
    this.#options = options;
  }

  /** Never throws: a failure is returned as a block with the reason. */
  async carryOut(writ: Writ | InvalidWrit, bearer: Bearer): Promise<CarriedOut> {
    if (writ.kind === "invalid") return { ok: false, block: misunderstoodBlock(writ, writ.reason) };
    try {
      return { ok: true, block: await this.#obey(writ, bearer) };
    } catch (error) {
      return { ok: false, block: this.#refusal(writ, error) };
    }
  }

  #obey(writ: Writ, bearer: Bearer): Promise<string> {
    switch (writ.kind) {
      case "create":
        return this.#create(writ, bearer);
      case "list":
        return this.#list(writ, bearer);
      default:
        return this.#order(writ, bearer);
    }
  }

  async #create(writ: CreateWrit, bearer: Bearer): Promise<string> {
    const { agent, sessionKey, conversationId, source, provenance, check } = bearer;
    const { schedules } = this.#options;
    await check?.(writ);
    const { phrase: schedule, message } = writ;
    const { scheduled_task: made, normalized } = await schedules.create(
      { schedule, message, agent, session_key: sessionKey, conversation_id: conversationId },
      {
        isWrit: true,
        ...(source === undefined ? {} : { source }),
        ...(provenance === undefined ? {} : { provenance }),
      },
    );
    const due = made.next_fire_at || made.fire_at || made.created_at;
    // A schedule that was created before from the same source may have another message.
    const kept = { ...writ, message: made.message ?? message };
    return scheduledBlock(kept, { id: made.id, normalized, next: momentText(due * 1_000), agent });
  }

  /** Lists only active and paused schedules, not ended ones. */
  async #list(writ: Writ, { agent }: Bearer): Promise<string> {
    const { tenant, storage } = this.#options;
    const found = await Promise.all(
      (["active", "paused"] as const).map(async (status) => {
        const bounds = { limit: LISTED_MAX, bytesMax: SCHEDULE_PAGE_BYTES };
        const listed = await storage.schedules.list({ tenant, agent, status, ...bounds });
        const count = await storage.schedules.count({ tenant, agent, status });
        return { listed, more: Math.max(count - listed.length, 0) };
      }),
    );
    const more = found.reduce((sum, each) => sum + each.more, 0);
    return listBlock(
      writ,
      found.flatMap(({ listed }) => listed.map(toListed)),
      more,
    );
  }

  async #order(writ: OrderWrit, { agent }: Bearer): Promise<string> {
    const { schedules } = this.#options;
    const { kind, id } = writ;
    const found = await schedules.get(id);
    // An agent must not learn that another agent has a schedule with this id.
    if (found.agent_id !== agent) throw new RotaError("not_found", noSchedule(id));
    // The open run may be the one that wrote this writ.
    if (kind === "cancel") await schedules.delete(id, { sparesRunning: true });
    else await schedules.update(id, { status: kind === "pause" ? "paused" : "active" });
    return doneBlock(writ);
  }

  #refusal(writ: Writ, error: unknown): string {
    if (!(error instanceof RotaError)) {
      this.#options.log.error({ error, writ: writ.kind }, "a writ could not be carried out");
      return errorBlock(writ, "it could not be carried out: the log of the server says why");
    }
    if (error.code === "scheduler_disabled" || error.code === "draining")
      return errorBlock(writ, NOT_RUNNING);
    if (error.code === "not_found" && "id" in writ) return errorBlock(writ, noSchedule(writ.id));
    const isMisunderstood = error.details?.["accepted"] !== undefined;
    return isMisunderstood ? misunderstoodBlock(writ, error.message) : errorBlock(writ, error.message);
  }
}

function toListed(record: ScheduleRecord): ListedSchedule {
  const { id, status, rule, nextFireAt, agent, work } = record;
  // In the time zone of the rule.
  const next = nextFireAt === null ? null : minuteText(rule.tz, nextFireAt);
  return { id, status, normalized: canonicalForm(rule), next, agent, message: workText(work) };
}

function workText(work: ScheduleWork): string {
  if (work.kind === "custom") return JSON.stringify(work.payload);
  return work.kind === "message" ? work.message : work.instruction;
}

/** In the time zone of the server, which also applies to `at 17:00`. */
function momentText(moment: number): string {
  return minuteText(localZone(), moment);
}

import { within } from "../../clock/within.ts";
import type { EventLog } from "../../events/event-log.ts";
import type { ContextUse, EstimateTokens } from "../../interface/options.ts";
import type { Clock } from "../../model/clock.ts";
import { isObject } from "../../model/input/field-checks.ts";
import type { Log } from "../../model/log.ts";
import { isTerminal } from "../../model/task-state.ts";
import type { SessionName, Storage } from "../../storage/storage.ts";

/** The timeout of an estimate: a message waits for it before it is stored. */
const ESTIMATE_MS = 2_000;

export interface TokenEstimatesOptions {
  /** Undefined: the program has no `estimateTokens`. */
  readonly estimate: EstimateTokens | undefined;
  readonly storage: Storage;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly log: Log;
  /** How many tasks of a session run at once by default. */
  readonly defaultMax: () => number;
  /** The node id of this process in attempts. */
  readonly node: () => string;
  /** Called when more tasks of a session may be able to start. */
  readonly onChanged: () => void;
}

/** Stores how full the contexts of sessions are, of all tenants, as the `estimateTokens` of the program returns it. */
export class TokenEstimates {
  readonly #options: TokenEstimatesOptions;
  /** At most one per session. */
  readonly #underWay = new Map<string, Promise<ContextUse | null>>();
  #stopListening: (() => void) | null = null;
  #stopped = false;

  constructor(options: TokenEstimatesOptions) {
    this.#options = options;
  }

  /** From now on, calls the estimator whenever a task of a session has ended in this process: only this process knows. */
  start(): void {
    const { estimate, eventLog } = this.#options;
    if (estimate === undefined) return;
    this.#stopListening ??= eventLog.listen(({ type, tenantId: tenant, taskId, state, sessionKey: key }) => {
      const isEnd = isTerminal(state) && type !== "batch.completed";
      if (isEnd && key !== undefined) void this.#ended(taskId, { tenant, key });
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#stopListening?.();
  }

  /**
   * Asks for estimates and stores new ones. Never throws, and returns within the time that the caller can wait. Returns the
   * estimates of sessions that do not exist yet: pass them to `store` once they do.
   */
  refresh(session: SessionName): Promise<ContextUse | null> {
    const { estimate } = this.#options;
    if (estimate === undefined || this.#stopped) return Promise.resolve(null);
    const name = nameOf(session);
    const underWay = this.#underWay.get(name) ?? this.#refresh(session, estimate);
    this.#underWay.set(name, underWay);
    return underWay;
  }

  /** Never throws. */
  async store(session: SessionName, use: ContextUse): Promise<void> {
    try {
      await this.#store(session, use);
    } catch (error) {
      this.#warn(session, error);
    }
  }

  async #refresh(session: SessionName, estimate: EstimateTokens): Promise<ContextUse | null> {
    const { tenant: tenantId, key } = session;
    try {
      const use = checkUse(await this.#inTime((async () => estimate(key, { tenantId }))()));
      return use === null || (await this.#store(session, use)) ? null : use;
    } catch (error) {
      this.#warn(session, error);
      return null;
    } finally {
      this.#underWay.delete(nameOf(session));
    }
  }

  async #ended(id: string, session: SessionName): Promise<void> {
    const { storage, node } = this.#options;
    try {
      const task = await storage.tasks.get({ tenant: session.tenant, id });
      if (task?.attempts.at(-1)?.node !== node()) return;
      // An estimate that is under way may be from before the end of the task.
      await this.#underWay.get(nameOf(session));
      await this.refresh(session);
    } catch (error) {
      this.#warn(session, error);
    }
  }

  #warn({ tenant, key: sessionKey }: SessionName, error: unknown): void {
    if (this.#stopped) return;
    this.#options.log.warn({ error, tenant, sessionKey }, "cannot estimate the tokens of a session");
  }

  #inTime<T>(work: Promise<T>): Promise<T> {
    const onLate = () => {
      throw new Error(`\`estimateTokens\` did not return within ${ESTIMATE_MS} ms`);
    };
    return within({ clock: this.#options.clock, ms: ESTIMATE_MS, work, onLate });
  }

  /** Returns whether the session exists. Does not create it: without a message nothing would ever delete it. */
  async #store({ tenant, key }: SessionName, { tokens, contextWindow }: ContextUse): Promise<boolean> {
    const { storage, defaultMax, onChanged } = this.#options;
    const before = await storage.sessions.get({ tenant, key });
    if (before === null) return false;
    if (before.tokens === tokens && before.contextWindow === contextWindow) return true;
    const changes = { tokens, contextWindow };
    await storage.sessions.update({ tenant, key, defaultMax: defaultMax(), changes });
    onChanged();
    return true;
  }
}

function nameOf({ tenant, key }: SessionName): string {
  return JSON.stringify([tenant, key]);
}

/** Null: the estimator does not know. Throws for an invalid result. */
function checkUse(use: unknown): ContextUse | null {
  if (use === null || use === undefined) return null;
  const { tokens, contextWindow } = isObject(use) ? use : {};
  if (isCount(tokens) && isCount(contextWindow) && contextWindow > 0) return { tokens, contextWindow };
  throw new TypeError(
    "`estimateTokens` must return `{tokens, contextWindow}`, whole numbers from 0 and from 1 on, or null",
  );
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

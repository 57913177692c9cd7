import type { EventLog } from "../../events/event-log.ts";
import type { ContextUse, EstimateTokens } from "../../interface/options.ts";
import type { Clock } from "../../model/clock.ts";
import { isObject } from "../../model/input/field-checks.ts";
import type { Log } from "../../model/log.ts";
import { isTerminal } from "../../model/task-state.ts";
import type { SessionName, Storage } from "../../storage/storage.ts";

/** A message waits for the estimate before it is taken in: longer than this nobody should. */
const ESTIMATE_MS = 2_000;

export interface TokenEstimatesOptions {
  /** Undefined: nobody estimates. */
  readonly estimate: EstimateTokens | undefined;
  readonly storage: Storage;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly log: Log;
  /** How many tasks of a session run at once when it does not say. */
  readonly defaultMax: () => number;
  /** What this process is called in attempts. */
  readonly node: () => string;
  /** Told when more of a session may be able to start. */
  readonly onChanged: () => void;
}

/** Keeps up with how full the contexts of sessions are, of all tenants, as the embedding program says. */
export class TokenEstimates {
  readonly #options: TokenEstimatesOptions;
  /** Of each session one at a time. */
  readonly #underWay = new Map<string, Promise<ContextUse | null>>();
  #stopListening: (() => void) | null = null;
  #stopped = false;

  constructor(options: TokenEstimatesOptions) {
    this.#options = options;
  }

  /** From now on the end of a task is a reason to ask anew, where it ran: its process is the one that knows. */
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
      const use = checkUse(await this.#inTime(async () => estimate(key, { tenantId })));
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
      // What is under way may have been answered before the task had ended.
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

  async #inTime<T>(work: () => Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const error = new Error(`\`estimateTokens\` did not answer within ${ESTIMATE_MS} ms`);
    const timer = this.#options.clock.setTimer(ESTIMATE_MS, () => late.reject(error));
    try {
      return await Promise.race([work(), late.promise]);
    } finally {
      timer.cancel();
    }
  }

  /** Whether there is such a session. It is not made for this: nothing would ever remove it if no message came. */
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

/** Null: it is not known. Throws for what cannot be. */
function checkUse(use: unknown): ContextUse | null {
  if (use === null || use === undefined) return null;
  const { tokens, contextWindow } = isObject(use) ? use : {};
  if (isCount(tokens) && isCount(contextWindow) && contextWindow > 0) return { tokens, contextWindow };
  throw new TypeError(
    "`estimateTokens` must answer `{tokens, contextWindow}`, whole numbers from 0 and from 1 on, or null",
  );
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

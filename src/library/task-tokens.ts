import type { KeyObject } from "node:crypto";
import type { TaskCaller } from "../interface/keys.ts";
import type { AgentName } from "../model/agent.ts";
import type { Bounds } from "../model/bounds.ts";
import type { Clock, Timer } from "../model/clock.ts";
import { enclosing, type Provenance } from "../model/provenance.ts";
import { ALL_DELEGATES } from "../model/scope.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { KeyRecord, Storage } from "../storage/storage.ts";
import { keyGone, liveKey } from "../tenants/live-key.ts";
import { newTokenKey, readTaskToken, signTaskToken, toTokenKey } from "../tenants/task-token.ts";

/** The name of the key that signs the tokens, in the storage. */
const KEY_NAME = "task tokens";
/** How often a stream that was opened with a token checks whether its attempt is still live. */
const WATCH_MS = 1_000;

export interface TaskTokensOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly storageNow: () => number;
  /** The agents that tasks of an agent may submit to. */
  readonly delegatesOf: (name: AgentName) => readonly string[];
}

/** Signs and checks the tokens with which attempts call Rota. All nodes share the key, so that each accepts the tokens of all. */
export class TaskTokens {
  readonly #options: TaskTokensOptions;
  #key: KeyObject;

  private constructor(options: TaskTokensOptions, key: KeyObject) {
    this.#options = options;
    this.#key = key;
  }

  static async open(options: TaskTokensOptions): Promise<TaskTokens> {
    return new TaskTokens(options, await readKey(options.storage));
  }

  /** The database was restored to an earlier state, which may have another key. */
  async restored(): Promise<void> {
    this.#key = await readKey(this.#options.storage);
  }

  sign({ tenant, id: taskId }: Pick<TaskRecord, "tenant" | "id">, fence: number): string {
    return signTaskToken({ tenant, taskId, fence }, this.#key);
  }

  /**
   * For whom a token stands. Null: it was not signed here, its attempt has ended, or the API key that submitted its task was deleted or
   * has expired.
   */
  async callerOf(token: string): Promise<TaskCaller | null> {
    const record = await this.#heldTask(token);
    if (record === null) return null;
    const { tenant, agent, spec } = record;
    const keyId = spec.createdBy?.keyId ?? null;
    const key = await this.#keyOf(record);
    if (keyId !== null && key === null) return null;
    return {
      ...{ tenant, agent, keyId },
      within: enclosing(record.id, spec),
      delegates: this.#delegatesOf(record),
      ...(key?.bounds == null ? {} : { bounds: key.bounds }),
    };
  }

  /** Its signal fires within a second after the attempt has ended. */
  watch(token: string): { readonly gone: AbortSignal; stop(): void } {
    const { clock } = this.#options;
    const controller = new AbortController();
    let timer: Timer | null = null;
    const look = () => {
      timer = clock.setTimer(WATCH_MS, async () => {
        // While the storage is away, readers get nothing either.
        const isLive = await this.#heldTask(token).catch(() => true);
        if (isLive === null) controller.abort();
        else if (timer !== null) look();
      });
    };
    look();
    const stop = () => {
      timer?.cancel();
      timer = null;
    };
    return { gone: controller.signal, stop };
  }

  /**
   * Who makes what the handler of a task makes through its context, and the bounds of the key that submitted the task. Throws
   * `forbidden` once that key was deleted or has expired.
   */
  async provenanceOf(record: TaskRecord): Promise<{ provenance: Provenance; bounds?: Bounds }> {
    const { agent: agentId, spec } = record;
    const keyId = spec.createdBy?.keyId ?? null;
    const key = await this.#keyOf(record);
    if (keyId !== null && key === null) throw keyGone();
    const provenance: Provenance = {
      createdBy: { keyId, agentId, via: "library" },
      within: enclosing(record.id, spec),
      ...(spec.reach === undefined ? {} : { reach: spec.reach }),
    };
    return { provenance, ...(key?.bounds == null ? {} : { bounds: key.bounds }) };
  }

  /** The key that submitted the task; null: none did, or it is gone. */
  async #keyOf({ tenant, spec }: TaskRecord): Promise<KeyRecord | null> {
    const { storage, storageNow } = this.#options;
    const id = spec.createdBy?.keyId ?? null;
    return id === null ? null : liveKey(storage, { tenant, id }, storageNow());
  }

  async #heldTask(token: string): Promise<TaskRecord | null> {
    const subject = readTaskToken(token, this.#key);
    if (subject === null) return null;
    const { tenant, taskId: id, fence } = subject;
    return this.#options.storage.tasks.held({ tenant, id, token: fence });
  }

  /** What its agent may, and no more than who submitted the task. */
  #delegatesOf({ tenant, agent, spec: { reach } }: TaskRecord): readonly string[] {
    const delegates = this.#options.delegatesOf({ tenant, agent });
    if (reach === undefined) return delegates;
    const others = reach.filter((each) => each !== agent);
    return delegates.includes(ALL_DELEGATES) ? others : others.filter((each) => delegates.includes(each));
  }
}

async function readKey(storage: Storage): Promise<KeyObject> {
  return toTokenKey(await storage.sharedSecret({ name: KEY_NAME, fresh: newTokenKey() }));
}

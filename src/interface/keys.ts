import type { Bounds } from "../model/bounds.ts";
import type { KEY, KEY_OWNER } from "../model/input/key-input.ts";
import type { InputOf } from "../model/input/schema.ts";
import type { EnclosingTask } from "../model/provenance.ts";
import type { Caller, Role } from "../model/role.ts";

/** API keys for HTTP. Over HTTP, an `admin` manages all keys, a `tenant-admin` those of its tenant. */
export interface Keys {
  /** Only this call returns the key itself. Throws `not_found` for an unknown tenant, `conflict` if the tenant has 1000 keys. */
  create(input: KeyInput): Promise<CreatedKey>;
  /** The keys of one tenant; left out: of the caller's own. */
  list(filter?: KeyOwner): Promise<KeyList>;
  /**
   * Within a second every node refuses the key and ends the streams that it reads. Throws `not_found`, also for a key of another
   * tenant than `owner`; left out: the caller's own.
   */
  delete(id: string, owner?: KeyOwner): Promise<{ readonly deleted: true }>;
}

export type KeyOwner = InputOf<typeof KEY_OWNER.fields>;

/** For the server, which authenticates requests to this process. */
export interface LocalKeys extends Keys {
  /**
   * Returns the caller that a key belongs to; null: the key is unknown, deleted or expired.
   *
   * @example
   * const caller = await rota.keys.callerOf("rota_…");
   * if (caller !== null) await rota.tenant(caller.tenant).tasks.list();
   */
  callerOf(key: string): Promise<Caller | null>;
  /**
   * For whom a task token stands; null: it is forged, or the attempt that got it has ended. Checked anew at each call.
   *
   * @example
   * const task = await rota.keys.callerOfTask("rtt_…");
   */
  callerOfTask(token: string): Promise<TaskCaller | null>;
  /** Its signal fires within a second after the key was deleted or has expired, or the attempt of a task token has ended. Call `stop` when you no longer need it. */
  watch(key: string): KeyWatch;
  /** Whether any tenant has a key. */
  any(): Promise<boolean>;
}

/** The caller that a task token stands for: an agent within one of its tasks. */
export interface TaskCaller {
  readonly tenant: string;
  readonly agent: string;
  /** The API key that submitted the task; null: none was required. */
  readonly keyId: string | null;
  readonly within: EnclosingTask;
  /** Other agents that it may submit to; `*`: all. */
  readonly delegates: readonly string[];
  /** The bounds of the key that submitted the task; left out: it has none of its own. */
  readonly bounds?: Bounds;
}

export interface KeyWatch {
  readonly gone: AbortSignal;
  stop(): void;
}

export type KeyInput = InputOf<typeof KEY.fields>;

export interface CreatedKey {
  readonly id: string;
  /** What to send as `Authorization: Bearer …`. */
  readonly key: string;
}

export interface KeyInfo {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly tenantId: string;
  readonly agentId?: string;
  /** With the role `worker`. */
  readonly agents?: readonly string[];
  /** What callers with it may make; left out: it has no bounds of its own. */
  readonly bounds?: Bounds;
  readonly createdAt: string;
  readonly expiresAt?: string;
  readonly lastUsedAt?: string;
}

export interface KeyList {
  readonly keys: readonly KeyInfo[];
  readonly count: number;
}

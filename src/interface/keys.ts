import type { KEY, KEY_OWNER } from "../model/input/key-input.ts";
import type { InputOf } from "../model/input/schema.ts";
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
  /** Its signal fires within a second after the key was deleted or has expired. Call `stop` when you no longer need it. */
  watch(key: string): KeyWatch;
  /** Whether any tenant has a key. */
  any(): Promise<boolean>;
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
  readonly createdAt: string;
  readonly expiresAt?: string;
  readonly lastUsedAt?: string;
}

export interface KeyList {
  readonly keys: readonly KeyInfo[];
  readonly count: number;
}

import type { Caller, Role } from "../model/role.ts";

/** API keys for HTTP. Over HTTP, an `admin` manages all keys, a `tenant-admin` those of its tenant. */
export interface Keys {
  /** Only this call returns the key itself. Throws `not_found` for an unknown tenant, `conflict` if the tenant has 1000 keys. */
  create(input: KeyInput): Promise<CreatedKey>;
  /** Of one tenant; left out: of whoever asks. */
  list(filter?: KeyOwner): Promise<KeyList>;
  /**
   * It is refused within a second, on every node, and what it reads just then ends. Throws `not_found`, also for a key of
   * another tenant than the one that is named; left out: that of whoever asks.
   */
  delete(id: string, owner?: KeyOwner): Promise<{ readonly deleted: true }>;
}

export interface KeyOwner {
  readonly tenantId?: string;
}

/** For whoever lets requests in to this process. */
export interface LocalKeys extends Keys {
  /**
   * Whose key this is; null: nobody's, or nobody's any more.
   *
   * @example
   * const caller = await rota.keys.whose("rota_…");
   * if (caller !== null) await rota.tenant(caller.tenant).tasks.list();
   */
  whose(key: string): Promise<Caller | null>;
  /** Fires once a key is nobody's any more, within a second; `stop` when nobody waits for that any more. */
  watch(key: string): KeyWatch;
  /** Whether there is any key at all, whoever's. */
  any(): Promise<boolean>;
}

export interface KeyWatch {
  readonly gone: AbortSignal;
  stop(): void;
}

export interface KeyInput {
  /** `admin` only in the tenant `default`. */
  readonly role: Role;
  readonly name: string;
  /** The only agent it is for: needed for the role `agent`, and only there. */
  readonly agentId?: string;
  /** RFC 3339; left out: it does not expire. */
  readonly expiresAt?: string;
  /** Left out: that of whoever asks. */
  readonly tenantId?: string;
}

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
  readonly createdAt: string;
  readonly expiresAt?: string;
  readonly lastUsedAt?: string;
}

export interface KeyList {
  readonly keys: readonly KeyInfo[];
  readonly count: number;
}

import type { Role } from "../model/role.ts";

/** Keys by which requests over HTTP are let in. For admins. */
export interface Keys {
  /** The key is told this once and never again. Throws `not_found` for a tenant that is not there. */
  create(input: KeyInput): Promise<CreatedKey>;
  /** Of one tenant; left out: of whoever asks. */
  list(filter?: { readonly tenantId?: string }): Promise<KeyList>;
  /** It is refused within a second, on every node. Throws `not_found`. */
  delete(id: string): Promise<{ readonly deleted: true }>;
}

export interface KeyInput {
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

import { randomBytes } from "node:crypto";
import { idMaker } from "../../engine/work/new-id.ts";
import type { AuditRecord, LocalAudit, NewAuditRecord } from "../../interface/audit.ts";
import type { KeyInfo, LocalKeys } from "../../interface/keys.ts";
import { RotaError } from "../../model/errors.ts";
import { parseAuditFilter } from "../../model/input/audit-filter-input.ts";
import { keyTenantNotFound, parseKeyInput, parseKeyOwner } from "../../model/input/key-input.ts";
import type { Provenance } from "../../model/provenance.ts";
import { roleIn } from "../../model/role.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import type { ServiceOptions } from "../../services/service.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { AuditEntry, KeyRecord, Storage } from "../../storage/storage.ts";
import { hashOf, newApiKey } from "../../tenants/api-key.ts";
import { digestOf } from "../../tenants/audit-chain.ts";
import { AuditLog } from "../../tenants/audit-log.ts";
import { KeyRing } from "../../tenants/key-ring.ts";
import { KeyUses } from "../../tenants/key-uses.ts";
import { pauseOfKey } from "./schedules-of-key.ts";

/** The most keys of one tenant: a `tenant-admin` creates keys, and a list returns all of them. */
const KEYS_MAX = 1_000;

/** The salt in the digest of a name, long enough that it cannot be guessed. */
const SALT_BYTES = 16;

export interface AccessOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly auditRetentionMs: () => number;
  /** The node membership, whose chain of the audit log this process writes. */
  readonly node: () => string;
}

/** API keys and the audit log of this process. */
export class Access {
  readonly keys: Omit<LocalKeys, "callerOfTask">;
  readonly audit: LocalAudit;
  readonly #options: AccessOptions;
  readonly #uses: KeyUses;
  readonly #ring: KeyRing;
  readonly #log: AuditLog;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#uses = new KeyUses(options);
    this.#ring = new KeyRing({ ...options, uses: this.#uses });
    this.#log = new AuditLog({ ...options, retentionMs: options.auditRetentionMs, chain: options.node });
    this.keys = this.#createKeys();
    this.audit = this.#createAudit();
  }

  /** Keys, or the tenants that have them, were changed. */
  keysChanged(): void {
    this.#ring.keysChanged();
  }

  /** The storage was restored to an earlier state. */
  restored(): void {
    this.#log.restored();
  }

  /** Begins to delete old entries of the audit log. */
  start(): void {
    this.#log.start();
  }

  /** Writes the queued entries and key uses. */
  async close(): Promise<void> {
    this.#ring.close();
    await Promise.all([this.#uses.stop(), this.#log.stop()]);
    await Promise.all([this.#uses.flush(), this.#log.flush()]).catch((error) =>
      this.#options.log.error({ error }, "could not store the last audit entries and uses of keys"),
    );
  }

  #createKeys(): Omit<LocalKeys, "callerOfTask"> {
    const { storage, storageClock, clock } = this.#options;
    const newId = idMaker("key_", clock);
    const ring = this.#ring;
    return {
      create: async (input) => {
        const { tenant = DEFAULT_TENANT, ...parsed } = parseKeyInput(input, { now: storageClock.now() });
        const { length } = await storage.keys.list({ tenant });
        if (length >= KEYS_MAX) {
          throw new RotaError(
            "conflict",
            `the tenant has ${length} keys, which is the limit: delete one first`,
          );
        }
        const key = newApiKey();
        const created = await storage.keys.create({ id: newId(), tenant, ...parsed, hash: hashOf(key) });
        if (created === null) throw keyTenantNotFound();
        return { id: created.id, key };
      },

      list: async (owner = {}) => {
        const tenant = parseKeyOwner(owner) ?? DEFAULT_TENANT;
        // So that the list includes all uses of keys in this process until now.
        await this.#uses.flush();
        const keys = (await storage.keys.list({ tenant })).map(toKeyInfo);
        return { keys, count: keys.length };
      },

      delete: async (id, owner = {}) => {
        const tenant = parseKeyOwner(owner) ?? DEFAULT_TENANT;
        const key = id.includes("\0") ? null : await storage.keys.get({ tenant, id });
        if (key === null) throw keyNotFound();
        // Before: if this process dies in between, no schedule of a deleted key goes on. After: what the key made meanwhile.
        await pauseOfKey(storage, key);
        if (!(await storage.keys.delete({ tenant, id }))) throw keyNotFound();
        await pauseOfKey(storage, key);
        return { deleted: true };
      },

      callerOf: (key) => ring.callerOf(key),
      watch: (key) => ring.watch(key),
      any: () => ring.any(),
    };
  }

  #createAudit(): LocalAudit {
    const { storage, storageClock } = this.#options;
    const toEntry = ({ tenantId = DEFAULT_TENANT, keyId = null, route, ...about }: NewAuditRecord) => {
      // In a form that every storage keeps: PostgreSQL refuses NUL, and the hash must match the entry that is read later.
      const subject = about.subject?.replaceAll("\0", "").toWellFormed() ?? null;
      const isErasable = about.isChosen === true && subject !== null;
      const subjectSalt = isErasable ? randomBytes(SALT_BYTES).toString("base64url") : null;
      const subjectDigest = isErasable ? digestOf(subject, subjectSalt) : null;
      const { address = null, status = null, count = 1 } = about;
      const provenance = about.provenance === undefined ? null : JSON.stringify(about.provenance);
      const who = { at: storageClock.now(), tenant: tenantId, keyId, address };
      return { ...who, route, subject, subjectDigest, subjectSalt, provenance, status, count };
    };
    return {
      list: async (filter = {}) => {
        const { tenant = DEFAULT_TENANT, ...params } = parseAuditFilter({ ...filter });
        await this.#log.flush();
        const { entries, nextCursor } = await storage.audit.list({ tenant, ...params });
        return {
          entries: entries.map(toAuditRecord),
          count: entries.length,
          nextCursor: nextCursor === null ? null : String(nextCursor),
        };
      },
      record: (entry) => this.#log.record(toEntry(entry)),
      write: (entry) => this.#log.write(toEntry(entry)),
    };
  }
}

function keyNotFound(): RotaError {
  return new RotaError("not_found", "key not found");
}

function toKeyInfo(record: KeyRecord): KeyInfo {
  const { id, name, role, tenant, agent, agents, bounds, createdAt, expiresAt, lastUsedAt } = record;
  return {
    id,
    name,
    role: roleIn(tenant, role),
    tenantId: tenant,
    ...(agent === null ? {} : { agentId: agent }),
    ...(agents === null ? {} : { agents }),
    ...(bounds === null ? {} : { bounds }),
    createdAt: rfc3339(createdAt),
    ...(expiresAt === null ? {} : { expiresAt: rfc3339(expiresAt) }),
    ...(lastUsedAt === null ? {} : { lastUsedAt: rfc3339(lastUsedAt) }),
  };
}

function toAuditRecord(entry: AuditEntry): AuditRecord {
  const { at, keyId, route, subject, address, status, count, provenance } = entry;
  return {
    at: rfc3339(at),
    keyId,
    route,
    subject,
    ...(address === null ? {} : { address }),
    ...(provenance === null ? {} : shownProvenance(JSON.parse(provenance))),
    ...(status === null ? {} : { status, count }),
  };
}

function shownProvenance({ createdBy, within }: Provenance): Partial<AuditRecord> {
  if (within === null) return { createdBy };
  return { createdBy, parentTaskId: within.taskId, rootTaskId: within.rootTaskId, depth: within.depth + 1 };
}

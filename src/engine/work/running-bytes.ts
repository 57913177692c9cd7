import { TASK_BYTES_MAX } from "../../model/input/task-input.ts";
import { slotsPerTenant } from "../../model/lane.ts";

export interface RunningBytesOptions {
  /** How many bytes the running tasks of this process may hold; 0: any number. */
  readonly max: () => number;
  /** The part of them that one tenant's tasks may hold; null: all, as there is no second enabled tenant. */
  readonly tenantShare: () => number | null;
  /** How many tasks run. */
  readonly running: () => number;
  /** Called when memory is free again, for all tenants or for one. */
  readonly onRoom: () => void;
}

/** The part that other modules may read. */
export type RunningMemory = Pick<
  RunningBytes,
  "held" | "max" | "hasRoom" | "tenantMax" | "heldBy" | "isOverShare"
>;

const NO_TENANTS: ReadonlySet<string> = new Set();

/**
 * How many bytes the running tasks of this process hold, as far as it knows: their input, the results of their dependencies,
 * requests, responses, and results that are not stored yet. An executor that ignores its abort signal holds them until it
 * returns.
 */
export class RunningBytes {
  readonly #options: RunningBytesOptions;
  #held = 0;
  readonly #heldBy = new Map<string, number>();

  constructor(options: RunningBytesOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#held;
  }

  /** 0: any number. */
  get max(): number {
    return this.#options.max();
  }

  /** How many bytes the tasks of one tenant may hold; null: as many as all may. Computed like slots per tenant. */
  get tenantMax(): number | null {
    const share = this.#options.tenantShare();
    return share === null ? null : slotsPerTenant(this.max, share);
  }

  heldBy(tenant: string): number {
    return this.#heldBy.get(tenant) ?? 0;
  }

  /** Whether tasks may start, though perhaps not of every tenant. */
  get hasRoom(): boolean {
    const { max } = this;
    return max === 0 || this.#counted < max;
  }

  /** The tenants whose tasks hold their share: no more of them may start. */
  get tenantsOverShare(): ReadonlySet<string> {
    const { tenantMax } = this;
    if (tenantMax === null || this.#held < tenantMax) return NO_TENANTS;
    const over = new Set<string>();
    for (const [tenant, held] of this.#heldBy) if (held >= tenantMax) over.add(tenant);
    return over;
  }

  isOverShare(tenant: string): boolean {
    const { tenantMax } = this;
    return tenantMax !== null && this.#held >= tenantMax && this.heldBy(tenant) >= tenantMax;
  }

  /**
   * How many tasks may be claimed at once: 0 while too much is held, otherwise at least 1. Assumes that each new task holds as
   * much as a running task on average, and at least the largest input of a task.
   */
  get claimsMax(): number {
    const { max } = this;
    if (max === 0) return Number.POSITIVE_INFINITY;
    const counted = this.#counted;
    if (counted >= max) return 0;
    const each = Math.max(this.#held / Math.max(this.#options.running(), 1), TASK_BYTES_MAX);
    return Math.max(Math.floor((max - counted) / each), 1);
  }

  hold(tenant: string, bytes: number): void {
    if (bytes === 0) return;
    this.#held += bytes;
    this.#heldBy.set(tenant, this.heldBy(tenant) + bytes);
  }

  release(tenant: string, bytes: number): void {
    if (bytes === 0) return;
    const isTight = this.#held >= (this.tenantMax ?? this.max);
    const hadRoom = !isTight || (this.hasRoom && !this.isOverShare(tenant));
    this.#held -= bytes;
    const left = this.heldBy(tenant) - bytes;
    if (left === 0) this.#heldBy.delete(tenant);
    else this.#heldBy.set(tenant, left);
    if (!hadRoom && this.hasRoom && !this.isOverShare(tenant)) this.#options.onRoom();
  }

  /**
   * The bytes that count against `max`: of each tenant no more than its share. A tenant exceeds its share when responses
   * arrive after its tasks have started. That must not keep tasks of other tenants waiting.
   */
  get #counted(): number {
    const { tenantMax } = this;
    if (tenantMax === null || this.#held <= tenantMax) return this.#held;
    let counted = this.#held;
    for (const held of this.#heldBy.values()) counted -= Math.max(held - tenantMax, 0);
    return counted;
  }
}

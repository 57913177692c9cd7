/** A task that is ready but for its concurrency key. */
export interface WantedTask {
  readonly seq: number;
  readonly line: number;
  readonly rank: number;
  readonly batch: string | null;
  readonly concurrency_key: string | null;
}

/** What one transaction has moved in a key. */
export interface MovedKey {
  readonly tenant: string;
  readonly key: string;
  /** Whoever had it has let go of it. */
  freed: boolean;
  /** These want it. They hold their places in their batches and are neither ready nor parked. */
  asking: WantedTask[];
}

/** The concurrency keys that one transaction has to give away before it ends. */
export class ConcurrencyKeyLedger {
  readonly #moved = new Map<string, MovedKey>();

  get isSettled(): boolean {
    return this.#moved.size === 0;
  }

  ask(tenant: string, key: string, task: WantedTask): void {
    this.#of(tenant, key).asking.push(task);
  }

  free(tenant: string, key: string): void {
    this.#of(tenant, key).freed = true;
  }

  /** Whether the task had asked for its key in this transaction; it does so no longer. */
  withdraw(tenant: string, key: string, seq: number): boolean {
    const moved = this.#moved.get(nameOf(tenant, key));
    const left = moved?.asking.filter((task) => task.seq !== seq) ?? [];
    if (moved === undefined || left.length === moved.asking.length) return false;
    moved.asking = left;
    return true;
  }

  /** All that are to be settled, in order; they are the caller's then. */
  take(): MovedKey[] {
    const moved = [...this.#moved.values()];
    this.#moved.clear();
    return moved.sort((a, b) => compare(a.tenant, b.tenant) || compare(a.key, b.key));
  }

  #of(tenant: string, key: string): MovedKey {
    const name = nameOf(tenant, key);
    let moved = this.#moved.get(name);
    if (moved === undefined) {
      moved = { tenant, key, freed: false, asking: [] };
      this.#moved.set(name, moved);
    }
    return moved;
  }
}

/** A tenant's name may hold anything: its length is what tells where it ends. */
function nameOf(tenant: string, key: string): string {
  return `${tenant.length} ${tenant} ${key}`;
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

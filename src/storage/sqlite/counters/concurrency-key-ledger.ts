/** A task that only its concurrency key keeps from being ready. */
export interface WantedTask {
  readonly seq: number;
  readonly line: number;
  readonly rank: number;
  readonly batch: string | null;
  readonly concurrency_key: string | null;
}

/** The changes of one transaction to a key. */
export interface MovedKey {
  readonly tenant: string;
  readonly key: string;
  /** The holder has released it. */
  freed: boolean;
  /** Tasks that want it. They hold the slots of their batches and are neither ready nor parked. */
  asking: WantedTask[];
}

/** Deferred work: the concurrency keys that a transaction has to assign before it commits. */
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

  /** Withdraws the request of a task for its key. Returns whether it had asked in this transaction. */
  withdraw(tenant: string, key: string, seq: number): boolean {
    const moved = this.#moved.get(nameOf(tenant, key));
    const left = moved?.asking.filter((task) => task.seq !== seq) ?? [];
    if (moved === undefined || left.length === moved.asking.length) return false;
    moved.asking = left;
    return true;
  }

  /** Removes and returns all keys that have to be settled, in order. */
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

/** A tenant's name may contain any character. Its length marks where it ends. */
function nameOf(tenant: string, key: string): string {
  return `${tenant.length} ${tenant} ${key}`;
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

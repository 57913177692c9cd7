/** The running work of one key, and its queue. */
interface KeyWork {
  active: number;
  readonly waiting: Set<() => void>;
}

/**
 * Runs a few pieces of work of each key at once and queues the others. However much one key requests at the same time, it cannot
 * take the storage from other keys.
 */
export class KeyConcurrency {
  readonly #max: number;
  readonly #keys = new Map<string | null, KeyWork>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Resolves with the function to call when the work is over. Rejects when `gone` fires while the work is still queued. */
  async enter(keyId: string | null, gone: AbortSignal): Promise<() => void> {
    const work = this.#keys.get(keyId) ?? { active: 0, waiting: new Set() };
    this.#keys.set(keyId, work);
    if (work.active < this.#max) work.active += 1;
    else await waitIn(work.waiting, gone);
    let inside = true;
    return () => {
      if (inside) this.#leave(keyId, work);
      inside = false;
    };
  }

  /** Yields first. Otherwise, where the storage responds at once, all work that waits would run in one turn of the event loop. */
  #leave(keyId: string | null, work: KeyWork): void {
    if (work.waiting.size === 0) this.#free(keyId, work);
    else setImmediate(() => this.#letNextBegin(keyId, work));
  }

  /** The work that has waited longest takes the slot. */
  #letNextBegin(keyId: string | null, work: KeyWork): void {
    for (const begin of work.waiting) {
      work.waiting.delete(begin);
      begin();
      return;
    }
    this.#free(keyId, work);
  }

  #free(keyId: string | null, work: KeyWork): void {
    work.active -= 1;
    if (work.active === 0) this.#keys.delete(keyId);
  }
}

function waitIn(waiting: Set<() => void>, gone: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      gone.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = () => {
      waiting.delete(begin);
      reject(gone.reason);
    };
    waiting.add(begin);
    if (gone.aborted) giveUp();
    else gone.addEventListener("abort", giveUp, { once: true });
  });
}

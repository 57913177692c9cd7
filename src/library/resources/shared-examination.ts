import type { DoctorOptions, DoctorProgress } from "../../interface/doctor.ts";

export interface ExaminationParts {
  /** Fires when no caller is left. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: DoctorProgress) => void;
}

/** One examination that is under way, and the callers that wait for it. */
interface UnderWay<Result> {
  readonly result: Promise<Result>;
  readonly abandoned: AbortController;
  readonly listeners: Set<(progress: DoctorProgress) => void>;
  callers: number;
}

/**
 * Runs one examination at a time. A caller that comes while one is under way shares its result. When all callers have left, it
 * stops.
 */
export class SharedExamination<Result> {
  readonly #examine: (parts: ExaminationParts) => Promise<Result>;
  #underWay: UnderWay<Result> | null = null;

  constructor(examine: (parts: ExaminationParts) => Promise<Result>) {
    this.#examine = examine;
  }

  async join({ signal, onProgress }: DoctorOptions = {}): Promise<Result> {
    signal?.throwIfAborted();
    const joined = this.#current();
    joined.callers += 1;
    if (onProgress !== undefined) joined.listeners.add(onProgress);
    const left = Promise.withResolvers<never>();
    const leave = () => left.reject(signal?.reason);
    signal?.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([joined.result, left.promise]);
    } finally {
      signal?.removeEventListener("abort", leave);
      if (onProgress !== undefined) joined.listeners.delete(onProgress);
      joined.callers -= 1;
      if (joined.callers === 0) joined.abandoned.abort();
    }
  }

  #current(): UnderWay<Result> {
    const before = this.#underWay;
    if (before !== null && !before.abandoned.signal.aborted) return before;
    const abandoned = new AbortController();
    const listeners = new Set<(progress: DoctorProgress) => void>();
    const onProgress = (progress: DoctorProgress) => {
      for (const listener of listeners) listener(progress);
    };
    // An abandoned examination ends with its current slice: the new one waits for that.
    const result = (before?.result ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#examine({ signal: abandoned.signal, onProgress }));
    const started: UnderWay<Result> = { result, abandoned, listeners, callers: 0 };
    this.#underWay = started;
    const over = () => {
      if (this.#underWay === started) this.#underWay = null;
    };
    result.then(over, over);
    return started;
  }
}

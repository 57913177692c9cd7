/** How far an examination is. */
export interface DoctorProgress {
  /** The check that runs: `counters`, `schedules`, `rollups` or `audit`. */
  readonly check: string;
  /** Rows, schedules or entries checked so far. */
  readonly done: number;
  /** About how many there are; null: it is not known. */
  readonly total: number | null;
}

export interface DoctorOptions {
  /** When it fires, the call throws its reason, and the examination stops unless another caller waits for it. */
  readonly signal?: AbortSignal;
  /** Called repeatedly while the examination runs. */
  readonly onProgress?: (progress: DoctorProgress) => void;
}

/** What an examination found. */
export interface DoctorReport {
  /** Whether nothing is wrong. */
  readonly ok: boolean;
  readonly checks: readonly DoctorCheck[];
}

export interface DoctorCheck {
  /** The check: `storage`, `clock`, `counters`, `schedules`, `rollups`, `audit`, `config`. */
  readonly name: string;
  readonly ok: boolean;
  /** The result in a sentence. */
  readonly summary: string;
  /** What is wrong, one sentence each, the first hundred. */
  readonly findings: readonly string[];
}

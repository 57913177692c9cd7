/** How far an examination is. */
export interface DoctorProgress {
  /** What is being looked at: `counters`, `schedules`, `rollups` or `audit`. */
  readonly check: string;
  /** Rows, schedules or entries that were looked at. */
  readonly done: number;
  /** About how many there are; null: it is not known. */
  readonly total: number | null;
}

export interface DoctorOptions {
  /** Gives up: the call throws the signal's reason, and the work stops unless another caller waits for it. */
  readonly signal?: AbortSignal;
  /** Called again and again while it goes on. */
  readonly onProgress?: (progress: DoctorProgress) => void;
}

/** What an examination found. */
export interface DoctorReport {
  /** Whether nothing is wrong. */
  readonly ok: boolean;
  readonly checks: readonly DoctorCheck[];
}

export interface DoctorCheck {
  /** What was looked at: `storage`, `clock`, `counters`, `schedules`, `rollups`, `audit`, `config`. */
  readonly name: string;
  readonly ok: boolean;
  /** What was found, in a sentence: also what is well. */
  readonly summary: string;
  /** What is wrong, one sentence each, the first hundred. */
  readonly findings: readonly string[];
}

/** What an examination found. */
export interface DoctorReport {
  /** Whether nothing is wrong. */
  readonly ok: boolean;
  readonly checks: readonly DoctorCheck[];
}

export interface DoctorCheck {
  /** What was looked at: `storage`, `clock`, `counters`, `schedules`, `config`. */
  readonly name: string;
  readonly ok: boolean;
  /** What was found, in a sentence: also what is well. */
  readonly summary: string;
  /** What is wrong, one sentence each, the first hundred. */
  readonly findings: readonly string[];
}

/** What an agent writes into its answers to schedule work for itself. */
export interface Writs {
  /**
   * Carries out every `/schedule` line of a text for an agent, which sees and touches its own schedules alone. Throws
   * `not_found` for an agent that is not listed.
   *
   * @example
   * const { output } = await rota.writs.carryOut({ agent: "research", text: "/schedule in 1 hour: check the deploy" });
   */
  carryOut(input: WritInput): Promise<WritAnswer>;
}

export interface WritInput {
  readonly text: string;
  /** Left out: `index`. */
  readonly agent?: string;
  /** The session that it was written in: the runs of what it schedules are part of it. */
  readonly session_key?: string | null;
  /** The conversation that it was written in: what it schedules returns there. */
  readonly conversation_id?: string | number | null;
}

export interface WritAnswer {
  /** Whether all of it was done. */
  readonly ok: boolean;
  /** A block for each line. */
  readonly output: string;
}

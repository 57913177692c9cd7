/** `/schedule` lines, with which an agent manages its own schedules. */
export interface Writs {
  /**
   * Carries out every `/schedule` line of a text for an agent. It can see and change only schedules of that agent. Throws
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
  /** The session of the text: runs of new schedules are part of it. */
  readonly session_key?: string | null;
  /** The conversation of the text: new schedules get it as their `conversation_id`. */
  readonly conversation_id?: string | number | null;
}

export interface WritAnswer {
  /** Whether all lines were carried out. */
  readonly ok: boolean;
  /** One block of text for each line. */
  readonly output: string;
}

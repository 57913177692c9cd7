import type { InputOf, OrNull } from "../model/input/schema.ts";
import type { WRITS } from "../model/input/writ-schema.ts";

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

export type WritInput = OrNull<InputOf<typeof WRITS.fields>>;

export interface WritAnswer {
  /** Whether all lines were carried out. */
  readonly ok: boolean;
  /** One block of text for each line. */
  readonly output: string;
}

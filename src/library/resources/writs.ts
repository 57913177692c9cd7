import type { Writs } from "../../interface/writs.ts";
import { RotaError } from "../../model/errors.ts";
import { errorBlock, NOT_RUNNING } from "../../schedules/writ-answer.ts";
import { type ParsedWrits, parseWritInput } from "../../schedules/writ-input.ts";
import { agentNotFound } from "./schedules.ts";
import type { CarriedOut, WritClerk } from "./writ-clerk.ts";

export interface WritsOptions {
  readonly clerk: WritClerk;
  /** Looks at what other nodes made, too. */
  readonly isKnown: (agent: string) => Promise<boolean>;
  /** The ids of those that are known here. */
  readonly agentIds: () => readonly string[];
  /** Throws while no tasks are accepted. */
  readonly checkOpen: () => void;
}

/** What agents ask for with `/schedule …`. */
export function createWrits({ clerk, isKnown, agentIds, checkOpen }: WritsOptions): Writs {
  return {
    async carryOut(input) {
      const { writs, ...bearer } = parseWritInput(input);
      const { agent } = bearer;
      refuseWhileClosed(writs, checkOpen);
      if (!(await isKnown(agent))) throw agentNotFound(agent, agentIds());
      const answers: CarriedOut[] = [];
      for (const writ of writs) answers.push(await clerk.carryOut(writ, bearer));
      return { ok: answers.every(({ ok }) => ok), output: answers.map(({ block }) => block).join("\n") };
    },
  };
}

/** The error has what the agent would be told, for whoever hands that on as it is. */
function refuseWhileClosed(writs: ParsedWrits["writs"], checkOpen: () => void): void {
  try {
    checkOpen();
  } catch (error) {
    if (!(error instanceof RotaError)) throw error;
    const output = writs.map((writ) => errorBlock(writ, NOT_RUNNING)).join("\n");
    throw new RotaError(error.code, error.message, { details: { output }, cause: error });
  }
}

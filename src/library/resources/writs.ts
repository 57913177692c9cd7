import type { Writs } from "../../interface/writs.ts";
import { RotaError } from "../../model/errors.ts";
import type { Scope } from "../../model/scope.ts";
import { errorBlock, NOT_RUNNING } from "../../schedules/writ-answer.ts";
import { type ParsedWrits, parseWritInput } from "../../schedules/writ-input.ts";
import type { Storage } from "../../storage/storage.ts";
import { forAgent, schedulingForbidden } from "../agent-scope.ts";
import { findOwnSession } from "./own-session.ts";
import { agentNotFound } from "./schedules.ts";
import type { CarriedOut, WritRunner } from "./writ-runner.ts";

export interface WritsOptions {
  readonly scope: Scope;
  readonly storage: Storage;
  readonly runner: WritRunner;
  /** Whether the caller may plan work for its agent. */
  readonly mayWrite: () => boolean;
  /** Includes agents that other nodes created. */
  readonly isKnown: (agent: string) => Promise<boolean>;
  /** The ids of the agents that this node knows. */
  readonly agentIds: () => readonly string[];
  /** Throws while no tasks are accepted. */
  readonly checkOpen: () => void;
}

/** The writs API of one tenant or agent. */
export function createWrits(options: WritsOptions): Writs {
  const { scope, storage, runner, mayWrite, isKnown, agentIds, checkOpen } = options;
  return {
    async carryOut(input) {
      const { writs, ...bearer } = parseWritInput(forAgent(scope, input, "agent"));
      const { agent, sessionKey } = bearer;
      if (!mayWrite()) throw schedulingForbidden(agent);
      if (scope.agent !== undefined && sessionKey !== null) await findOwnSession(storage, scope, sessionKey);
      refuseWhileClosed(writs, checkOpen);
      if (!(await isKnown(agent))) throw agentNotFound(agent, agentIds());
      const answers: CarriedOut[] = [];
      for (const writ of writs) answers.push(await runner.carryOut(writ, bearer));
      return { ok: answers.every(({ ok }) => ok), output: answers.map(({ block }) => block).join("\n") };
    },
  };
}

/** The error contains the block for the agent, so that the caller can pass it on as it is. */
function refuseWhileClosed(writs: ParsedWrits["writs"], checkOpen: () => void): void {
  try {
    checkOpen();
  } catch (error) {
    if (!(error instanceof RotaError)) throw error;
    const output = writs.map((writ) => errorBlock(writ, NOT_RUNNING)).join("\n");
    throw new RotaError(error.code, error.message, { details: { output }, cause: error });
  }
}

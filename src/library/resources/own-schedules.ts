import { isObject } from "../../model/input/field-checks.ts";
import type { Scope } from "../../model/scope.ts";
import type { Storage } from "../../storage/storage.ts";
import { forAgent, schedulingForbidden } from "../agent-scope.ts";
import { findOwnSession } from "./own-session.ts";
import type { WrittenSchedules } from "./schedules.ts";

export interface OwnSchedulesOptions {
  readonly scope: Scope;
  readonly storage: Storage;
  /** Whether the definition of the agent has `writs`. */
  readonly hasWrits: () => boolean;
}

/** For a caller that acts for one agent: it makes and changes schedules of that agent, if the agent may schedule work. */
export function ownSchedules(
  schedules: WrittenSchedules,
  { scope, storage, hasWrits }: OwnSchedulesOptions,
): WrittenSchedules {
  const { agent } = scope;
  if (agent === undefined) return schedules;

  const checkWrits = () => {
    if (!hasWrits()) throw schedulingForbidden(agent);
  };

  /** The input for the agent of the caller, in a session that is not another agent's. */
  async function own<Input>(given: Input): Promise<Input> {
    checkWrits();
    const input = forAgent(scope, given, "agent");
    const key = isObject(input) ? input["session_key"] : undefined;
    if (typeof key === "string") await findOwnSession(storage, scope, key);
    return input;
  }

  /** Throws `not_found` for a schedule of another agent. */
  async function checkOwn(id: number): Promise<void> {
    checkWrits();
    await schedules.get(id);
  }

  return {
    ...schedules,
    create: async (input, options) => schedules.create(await own(input), options),
    dryRun: async (input) => schedules.dryRun(await own(input)),
    async update(id, changes, reading) {
      await checkOwn(id);
      return schedules.update(id, await own(changes), reading);
    },
    async delete(id, options) {
      await checkOwn(id);
      return schedules.delete(id, options);
    },
    async run(id, options, reading) {
      await checkOwn(id);
      return schedules.run(id, options, reading);
    },
  };
}

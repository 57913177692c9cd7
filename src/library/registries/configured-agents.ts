import { dotted } from "../../config/option-kinds.ts";
import type { RotaOptions } from "../../interface/options.ts";
import { AGENT_ID_FORM, toAgentId } from "../../model/agent.ts";
import type { RotaError } from "../../model/errors.ts";
import { workerByKindFault } from "../../model/executor-config.ts";
import { checkKnown, isObject, quoted } from "../../model/input/field-checks.ts";
import { TASK_KINDS, type TaskKind } from "../../model/task.ts";
import {
  type Agent,
  attempt,
  type ExecutorDependencies,
  type MadeExecutor,
  makeExecutor,
  readAgent,
} from "./agent.ts";

interface ReadParams<Value> extends ExecutorDependencies {
  /** The previous ones: those with an unchanged description are kept. */
  readonly before?: ReadonlyMap<string, Value> | undefined;
  /** Collects all faults. */
  readonly faults: string[];
}

/** The agents of the options. Left out: as before. */
export function readAgents(
  given: RotaOptions["agents"],
  { before = new Map(), faults, ...executorDependencies }: ReadParams<Agent>,
): ReadonlyMap<string, Agent> {
  if (given === undefined) return before;
  const agents = new Map<string, Agent>();
  for (const [written, options] of entriesOf("agents", given, faults)) {
    const path = dotted(["agents", written]);
    const id = toAgentId(written);
    if (id === null) faults.push(`\`${path}\`: the id of an agent is ${AGENT_ID_FORM}`);
    else if (agents.has(id)) faults.push(`\`${path}\` is there twice, typed in two ways: keep one of them`);
    else {
      const errors: RotaError[] = [];
      const params = {
        ...executorDependencies,
        prefix: `${path}.`,
        before: before.get(id)?.made,
        faults: errors,
      };
      agents.set(id, readAgent(options, params));
      faults.push(...errors.map(({ message }) => message));
    }
  }
  return agents;
}

/** The executors of the options, by kind of task. Left out: as before. */
export function readExecutors(
  given: RotaOptions["executors"],
  { before = new Map(), faults, ...executorDependencies }: ReadParams<MadeExecutor>,
): ReadonlyMap<TaskKind, MadeExecutor> {
  if (given === undefined) return before as ReadonlyMap<TaskKind, MadeExecutor>;
  const executors = new Map<TaskKind, MadeExecutor>();
  const errors: RotaError[] = [];
  attempt(errors, () => checkKnown(isObject(given) ? given : {}, TASK_KINDS, "executors."));
  for (const [kind, config] of entriesOf("executors", given, faults)) {
    if (isObject(config) && (config as { type?: unknown }).type === "worker") {
      faults.push(workerByKindFault(`executors.${kind}`));
      continue;
    }
    const params = { ...executorDependencies, before: before.get(kind) };
    const made = attempt(errors, () => makeExecutor(config, `executors.${kind}`, params));
    if (made !== undefined) executors.set(kind as TaskKind, made);
  }
  faults.push(...errors.map(({ message }) => message));
  return executors;
}

function entriesOf<Value>(
  name: string,
  given: Readonly<Record<string, Value>>,
  faults: string[],
): [string, Value][] {
  if (isObject(given)) return Object.entries(given as Record<string, Value>);
  faults.push(`\`${name}\` must be an object of ${name}, not ${quoted(given)}`);
  return [];
}

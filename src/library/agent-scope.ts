import { toAgentId } from "../model/agent.ts";
import { RotaError } from "../model/errors.ts";
import { isObject, joinWithOr } from "../model/input/field-checks.ts";
import { ALL_DELEGATES, type Scope } from "../model/scope.ts";
import { keepOwn } from "../model/text/own-json.ts";

/** The whole API for a tenant. For one agent: these methods alone. Routes refuse the others, too. */
export function permitted<Api extends object>(
  scope: Scope,
  api: Api,
  methods: readonly (string & keyof Api)[],
): Api {
  if (scope.agent === undefined) return api;
  const isPermitted = (name: string) => (methods as readonly string[]).includes(name);
  return Object.fromEntries(
    Object.entries(api).map(([name, method]) => [
      name,
      isPermitted(name) ? method : async () => refuseAgent(scope),
    ]),
  ) as Api;
}

/** Throws `forbidden` for a caller that sees only one agent. */
export function refuseAgent({ agent }: Scope): void {
  if (agent === undefined) return;
  throw new RotaError(
    "forbidden",
    "the role `agent` may not do this: use a key with the role `operator`, `tenant-admin` or `admin`",
  );
}

/**
 * The input with the agent of the caller filled in. Throws `forbidden` if it names another one. What is not an object is passed
 * on, and refused later.
 */
export function forAgent<Input>(
  { agent }: Scope,
  input: Input,
  field: "agentId" | "agent" = "agentId",
): Input {
  if (agent === undefined || !isObject(input)) return input;
  const named = input[field] ?? undefined;
  if (named !== undefined && toAgentId(named) !== agent) throw otherAgent(agent);
  return keepOwn(input, { ...input, [field]: agent });
}

/** The same for a task, which may also go to a delegate of the agent. */
export function forDelegate<Input>(scope: Scope, input: Input): Input {
  const { agent, delegates } = scope;
  if (agent === undefined || delegates === undefined || !isObject(input)) return forAgent(scope, input);
  const named = toAgentId(input["agentId"] ?? undefined);
  if (named === null || named === agent) return forAgent(scope, input);
  if (delegates.includes(ALL_DELEGATES) || delegates.includes(named)) return input;
  throw new RotaError(
    "forbidden",
    `a task of the agent "${agent}" may not submit to "${named}": name ${joinWithOr([agent, ...delegates].map((each) => `"${each}"`))}, or add "${named}" to \`delegates\` of "${agent}" (a task reaches no further than its submitter)`,
  );
}

export function schedulingForbidden(agent: string): RotaError {
  return new RotaError(
    "forbidden",
    `agent "${agent}" is not allowed to schedule work: set \`writs: true\` on the agent`,
  );
}

function otherAgent(agent: string): RotaError {
  return new RotaError("forbidden", `this API key is for the agent "${agent}" alone: name that one, or none`);
}

/** Whether a filter names an agent that the caller does not see. */
export function namesOther({ agent }: Scope, named: unknown): boolean {
  return agent !== undefined && named !== undefined && toAgentId(named) !== agent;
}

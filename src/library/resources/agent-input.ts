import { isMask } from "../../config/masked.ts";
import { executorUrls } from "../../executors/create-executor.ts";
import type { ExecutorConfig } from "../../executors/executor.ts";
import type { AgentOptions } from "../../interface/options.ts";
import type { Clock } from "../../model/clock.ts";
import type { RotaError } from "../../model/errors.ts";
import { type Fields, insteadOf, invalidField, isObject, preview } from "../../model/input/field-checks.ts";
import { JSON_DEPTH_MAX } from "../../model/input/task-input.ts";
import type { TargetGuard } from "../../outbound/target-guard.ts";
import { readAgent } from "../registries/agent.ts";

/** The largest definition of one agent, as JSON. */
const DEFINITION_BYTES_MAX = 65_536;
/** Each takes at least six bytes: a list with more of them is too large and is refused without further checks. */
const FIELDS_MAX = Math.floor(DEFINITION_BYTES_MAX / 6);

export interface AgentInputParams {
  readonly guard: TargetGuard;
  readonly clock: Clock;
}

/** Refuses values that are no objects. */
export function asFields(given: unknown): Fields {
  if (isObject(given)) return given;
  throw invalidField("agent", `an agent must be an object, like {"maxInflight": 2}${insteadOf(given)}`);
}

/**
 * The definition of an agent to store: `before` with the fields of `given`, where null removes a field. Throws
 * `invalid_field`.
 */
export async function agentDefinition(
  before: AgentOptions,
  given: Fields,
  { guard, clock }: AgentInputParams,
): Promise<Record<string, unknown>> {
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const kept = Object.entries({ ...before, ...said }).filter(([, value]) => value !== null);
  const definition = Object.fromEntries(kept);
  refuseWhatIsNone(said["executor"]);
  const faults: RotaError[] = [];
  readAgent(definition, { clock, guard, prefix: "", faults });
  const [fault] = faults;
  if (fault !== undefined) throw fault;
  await checkTargets(said["executor"] as ExecutorConfig | null | undefined, guard);
  return asJson(definition);
}

/** A handler cannot be stored, and a mask must not be stored as the secret. */
function refuseWhatIsNone(executor: unknown): void {
  if (typeof executor === "function") {
    throw invalidField("executor", "`executor` must be a description: use `rota.agent()` for a handler");
  }
  const field = maskIn(executor, "executor");
  if (field === undefined) return;
  throw invalidField(field, `\`${preview(field)}\` shows where a secret was: write the secret itself`);
}

/** The path of the first mask, at any depth: headers and fields of a request are masked as well. */
function maskIn(value: unknown, path: string, depth = 0): string | undefined {
  if (typeof value === "string") return isMask(value) ? path : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  // Also ends objects that contain themselves, which only a program can pass.
  if (depth >= JSON_DEPTH_MAX) {
    throw invalidField("executor", `\`executor\` is nested deeper than ${JSON_DEPTH_MAX} levels: flatten it`);
  }
  const fields = value as Readonly<Record<string, unknown>>;
  const names = Object.keys(fields);
  if (names.length > FIELDS_MAX) throw tooLarge();
  for (const name of names) {
    const mask = maskIn(fields[name], `${path}.${name}`, depth + 1);
    if (mask !== undefined) return mask;
  }
  return undefined;
}

async function checkTargets(executor: ExecutorConfig | null | undefined, guard: TargetGuard): Promise<void> {
  if (executor === undefined || executor === null) return;
  for (const url of executorUrls(executor)) {
    const field = Object.entries(executor).find(([, value]) => value === url)?.[0] ?? "url";
    await guard.check(url, `executor.${field}`);
  }
}

function asJson(definition: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const text = JSON.stringify(definition);
  if (Buffer.byteLength(text) <= DEFINITION_BYTES_MAX) return JSON.parse(text);
  throw tooLarge();
}

function tooLarge(): Error {
  return invalidField("executor", `an agent may take ${DEFINITION_BYTES_MAX} bytes of JSON at most`);
}

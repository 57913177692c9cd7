import { isObject, preview } from "../model/input/field-checks.ts";
import { nearestName } from "../model/text/nearest-name.ts";
import type { Layers } from "./layers.ts";
import { fromText, inCapitals, OPTIONS } from "./options.ts";
import { DEFAULT_SECRET_ENV } from "./webhooks-schema.ts";

const PREFIX = "ROTA_";
/** Short names of the options that are set most often. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  ROTA_PORT: "ROTA_SERVER_PORT",
  ROTA_HOST: "ROTA_SERVER_HOST",
};
/** Variables of Rota that are no options: the server for commands, and what `command` executors pass to their programs. */
const OTHER_NAMES = [
  "ROTA_URL",
  "ROTA_KEY",
  "ROTA_SECRET_KEY",
  "ROTA_TASK_ID",
  "ROTA_AGENT_ID",
  "ROTA_TENANT",
  "ROTA_ATTEMPT",
  "ROTA_REQUEST_ID",
  "ROTA_TASK_TOKEN",
];
/** What other systems call these options. */
const SYNONYMS: Readonly<Record<string, string>> = {
  ROTA_DB: "ROTA_STORAGE",
  ROTA_DATABASE: "ROTA_STORAGE",
  ROTA_DATABASE_URL: "ROTA_STORAGE",
  ROTA_API_KEY: "ROTA_KEY",
};
/** What Kubernetes sets for a service called rota. */
const KUBERNETES = /^ROTA_(?:SERVICE_(?:HOST|PORT)(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)$/;
const KUBERNETES_PORT = /^(?:tcp|udp|sctp):\/\//;
/** Accepts both `ROTA_LANE_` and `ROTA_LANES_`, which follows the path of the option. */
const LANE_PREFIX = /^ROTA_LANES?_/;

/**
 * Applies `ROTA_…` variables. An empty one counts as not set. An unknown one is no fault, since other programs may use such
 * names, but a hint names it. Variables that Kubernetes sets for a service called rota are ignored.
 */
export function applyEnvironment(
  layers: Layers,
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  const byVariable = new Map(OPTIONS.map((option) => [option.variable, option]));
  const unknown: string[] = [];
  for (const [variable, text] of Object.entries(environment)) {
    if (!variable.startsWith(PREFIX) || text === undefined || text === "") continue;
    if (KUBERNETES.test(variable) || (variable === "ROTA_PORT" && KUBERNETES_PORT.test(text))) continue;
    const long = SHORT_NAMES[variable];
    // The long name wins if both are set.
    if (long !== undefined && environment[long]) continue;
    const option = byVariable.get(long ?? variable);
    if (option !== undefined) {
      layers.set(option.path, fromText(text, option.kind), variable);
    } else if (LANE_PREFIX.test(variable)) {
      layers.set(["lanes", laneName(variable, layers)], fromText(text, "json"), variable);
    } else {
      unknown.push(variable);
    }
  }
  const meant = new Set([...OTHER_NAMES, DEFAULT_SECRET_ENV, ...namedVariables(layers.values)]);
  return unknown.filter((variable) => !meant.has(variable)).map(hintFor);
}

/** A lane of the file whose name in capitals is this one, else a new lane. */
function laneName(variable: string, { values }: Layers): string {
  const name = variable.replace(LANE_PREFIX, "");
  const known = isObject(values["lanes"]) ? Object.keys(values["lanes"]) : [];
  return known.find((lane) => inCapitals(lane) === name) ?? name.toLowerCase();
}

/** The variables that the configuration names: `webhooks.secretEnv`, `apiKeyEnv` of an executor. */
function namedVariables(values: unknown): string[] {
  if (Array.isArray(values)) return values.flatMap(namedVariables);
  if (!isObject(values)) return [];
  return Object.entries(values).flatMap(([name, value]) =>
    typeof value === "string" ? (name.endsWith("Env") ? [value] : []) : namedVariables(value),
  );
}

function hintFor(variable: string): string {
  const names = [...OPTIONS.map((option) => option.variable), ...Object.keys(SHORT_NAMES), ...OTHER_NAMES];
  const meant = SYNONYMS[variable] ?? nearest(variable, names);
  const hint =
    meant === undefined ? "`rota config show` lists what can be configured" : `did you mean ${meant}?`;
  return `${preview(variable)} is not an option of Rota and changes nothing: ${hint}`;
}

function nearest(variable: string, names: readonly string[]): string | undefined {
  const short = names.map((name) => name.slice(PREFIX.length));
  const name = nearestName(variable.slice(PREFIX.length), short);
  return name === undefined ? undefined : `${PREFIX}${name}`;
}

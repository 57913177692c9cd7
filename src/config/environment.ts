import { isObject } from "../model/field-checks.ts";
import { nearestName } from "../model/nearest-name.ts";
import type { Layers } from "./layers.ts";
import { fromText, inCapitals, OPTIONS } from "./options.ts";
import { DEFAULT_SECRET_ENV } from "./webhooks-schema.ts";

const PREFIX = "ROTA_";
/** Also as the path of the option is written, like all others. */
const LANE_PREFIX = /^ROTA_LANES?_/;

/**
 * Sets what `ROTA_…` variables say. An empty one counts as not set. One that means nothing is no fault, since other
 * programs choose such names too (Kubernetes makes `ROTA_PORT` for a service called rota); if it looks like one of
 * ours, a hint is returned.
 */
export function applyEnvironment(
  layers: Layers,
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  const byVariable = new Map(OPTIONS.map((option) => [option.variable, option]));
  const unknown: string[] = [];
  for (const [variable, text] of Object.entries(environment)) {
    if (!variable.startsWith(PREFIX) || text === undefined || text === "") continue;
    const option = byVariable.get(variable);
    if (option !== undefined) {
      layers.set(option.path, fromText(text, option.kind), variable);
    } else if (LANE_PREFIX.test(variable)) {
      layers.set(["lanes", laneName(variable, layers)], fromText(text, "json"), variable);
    } else {
      unknown.push(variable);
    }
  }
  const secret = secretVariable(layers);
  return unknown.filter((variable) => variable !== secret).flatMap(hintFor);
}

/** A lane of the file whose name in capitals is this one, else a new lane. */
function laneName(variable: string, { values }: Layers): string {
  const name = variable.replace(LANE_PREFIX, "");
  const known = isObject(values["lanes"]) ? Object.keys(values["lanes"]) : [];
  return known.find((lane) => inCapitals(lane) === name) ?? name.toLowerCase();
}

/** The variable that is no option but holds the secret of callbacks. */
function secretVariable({ values }: Layers): unknown {
  const webhooks = isObject(values["webhooks"]) ? values["webhooks"] : {};
  return webhooks["secretEnv"] ?? DEFAULT_SECRET_ENV;
}

function hintFor(variable: string): string[] {
  const names = OPTIONS.map((option) => option.variable.slice(PREFIX.length));
  const nearest = nearestName(variable.slice(PREFIX.length), names);
  if (nearest === undefined) return [];
  return [`${variable} is not an option of Rota: did you mean ${PREFIX}${nearest}?`];
}

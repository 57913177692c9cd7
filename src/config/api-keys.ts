import { findApiKey } from "../model/api-key-variable.ts";
import { variableNameFault } from "../model/executor-program.ts";
import { isObject } from "../model/input/field-checks.ts";
import { dotted } from "./option-kinds.ts";

/** What is wrong with the variables that `apiKeyEnv` names, in a configuration that may have other faults. */
export function apiKeyFaults(
  { executors, agents }: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  const named = [
    ...entriesOf(executors).map(([kind, executor]) => ({ path: ["executors", kind], executor })),
    ...entriesOf(agents).map(([id, agent]) => ({
      path: ["agents", id, "executor"],
      executor: isObject(agent) ? agent["executor"] : undefined,
    })),
  ];
  return named.flatMap(({ path, executor }) => {
    const variable = isObject(executor) && executor["type"] === "openai" ? executor["apiKeyEnv"] : undefined;
    // The schema reports what is not the name of a variable.
    if (typeof variable !== "string" || variableNameFault(variable) !== null) return [];
    const found = findApiKey(variable, environment, dotted([...path, "apiKeyEnv"]));
    return found.ok ? [] : [found.fault];
  });
}

function entriesOf(section: unknown): [string, unknown][] {
  return isObject(section) ? Object.entries(section) : [];
}

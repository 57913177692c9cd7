import type { AgentName } from "../../model/agent.ts";
import { isObject } from "../../model/input/field-checks.ts";
import type { SecretBox } from "./secret-box.ts";

type Definition = Readonly<Record<string, unknown>>;

/**
 * The definition of an agent as it is stored: each header of its executor is encrypted, and `sealedWith` is the id of the key, so
 * that the storage gives its tasks only to nodes that have the key.
 */
export function sealHeaders(
  definition: Definition,
  name: AgentName,
  box: SecretBox,
): Record<string, unknown> {
  const sealed = withHeaders(definition, (value, header) => box.seal(value, owner(name, header)));
  if (sealed === null || box.sealsWith === undefined) return definition;
  return { ...sealed, sealedWith: box.sealsWith };
}

/** The decrypted definition; null: it was encrypted with a key that this process does not have. */
export function openHeaders(stored: Definition, name: AgentName, box: SecretBox): Definition | null {
  const { sealedWith, ...definition } = stored;
  if (sealedWith === undefined) return stored;
  let isOpen = true;
  const opened = withHeaders(definition, (value, header) => {
    const secret = box.open(value, owner(name, header));
    isOpen &&= secret !== null;
    return secret ?? "";
  });
  return isOpen ? opened : null;
}

function owner({ tenant, agent }: AgentName, header: string): string {
  return `agent\n${tenant}\n${agent}\n${header}`;
}

/** Null where there are no headers. */
function withHeaders(
  definition: Definition,
  change: (value: string, header: string) => string,
): Record<string, unknown> | null {
  const { executor } = definition;
  if (!isObject(executor) || !isObject(executor["headers"])) return null;
  const headers = Object.entries(executor["headers"]).map(([header, value]) => [
    header,
    change(String(value), header),
  ]);
  return { ...definition, executor: { ...executor, headers: Object.fromEntries(headers) } };
}

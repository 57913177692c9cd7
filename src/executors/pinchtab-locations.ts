import { executorBaseUrlFault } from "../model/executor-url.ts";
import { type Fields, isObject } from "../model/input/field-checks.ts";
import { baseOf } from "./base-url.ts";

/** Which instance has which tab, according to a PinchTab server. */
export interface TabLocations {
  /** The instance of a tab, by the tab's id. */
  readonly tabs: ReadonlyMap<string, string>;
  /** The address of an instance, by its id. Null if it has no usable address, as while it starts. */
  readonly instances: ReadonlyMap<string, InstanceAddress | null>;
}

/** A URL without a slash at its end, or a port on the host of the server. */
export type InstanceAddress = { readonly url: string } | { readonly port: number };

/**
 * The tabs of `GET /instances/tabs`, each with its instance. Null if the response is not a list of tabs. Accepts a bare list or
 * one under `tabs`, with `id` or `tabId`, and `instanceId`, `instance` or `instance.id`.
 */
export function readTabs(answer: unknown): Map<string, string> | null {
  return readList(answer, "tabs", (tab) => {
    const { instance } = tab;
    return [
      idOf(tab["id"]) ?? idOf(tab["tabId"]),
      idOf(tab["instanceId"]) ?? idOf(isObject(instance) ? instance["id"] : instance),
    ];
  });
}

/** The instances of `GET /instances`, each with its address. Null if the response is not a list of instances. */
export function readInstances(answer: unknown): Map<string, InstanceAddress | null> | null {
  return readList(answer, "instances", ({ id, url, port }) => [idOf(id), addressOf(url, port)]);
}

/** The URL of an instance comes first: it may be on another machine. */
function addressOf(url: unknown, port: unknown): InstanceAddress | null {
  if (executorBaseUrlFault(url) === null) return { url: baseOf(url as string) };
  const number = portOf(port);
  return number === null ? null : { port: number };
}

/** Ignores incomplete entries. Of two entries with the same id, the first counts. */
function readList<Value>(
  answer: unknown,
  name: string,
  read: (entry: Fields) => [id: string | undefined, value: Value | undefined],
): Map<string, Value> | null {
  const list = isObject(answer) && Object.hasOwn(answer, name) ? answer[name] : answer;
  const found = new Map<string, Value>();
  // A server written in Go sends null for an empty list.
  if (list === null) return found;
  if (!Array.isArray(list)) return null;
  for (const entry of list) {
    const [id, value] = isObject(entry) ? read(entry) : [];
    if (id !== undefined && value !== undefined && !found.has(id)) found.set(id, value);
  }
  return found;
}

function idOf(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function portOf(value: unknown): number | null {
  const port = typeof value === "string" && /^\d{1,5}$/.test(value) ? Number(value) : value;
  return Number.isInteger(port) && (port as number) >= 1 && (port as number) <= 65_535
    ? (port as number)
    : null;
}

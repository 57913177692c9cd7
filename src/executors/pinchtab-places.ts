import { executorBaseUrlFault } from "../model/executor-url.ts";
import { type Fields, isObject } from "../model/input/field-checks.ts";
import { baseOf } from "./base-url.ts";

/** Who has which tab, by what a PinchTab server says. */
export interface Places {
  /** The instance that has a tab, by the tab's id. */
  readonly tabs: ReadonlyMap<string, string>;
  /** Where an instance is reached, by its id; null when it names no place that could be one, as while it starts. */
  readonly instances: ReadonlyMap<string, InstanceAddress | null>;
}

/** A URL, without a slash at its end, or a port of the host that the server is on. */
export type InstanceAddress = { readonly url: string } | { readonly port: number };

/**
 * The tabs of `GET /instances/tabs`, each with its instance; null when that is not a list of tabs. It is read liberally:
 * bare or under `tabs`, with `id` or `tabId`, and `instanceId`, `instance` or `instance.id`.
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

/** The instances of `GET /instances`, each with its address; null when that is not a list of instances. */
export function readInstances(answer: unknown): Map<string, InstanceAddress | null> | null {
  return readList(answer, "instances", ({ id, url, port }) => [idOf(id), addressOf(url, port)]);
}

/** An instance that has a URL is reached there: it may be on another machine. */
function addressOf(url: unknown, port: unknown): InstanceAddress | null {
  if (executorBaseUrlFault(url) === null) return { url: baseOf(url as string) };
  const number = portOf(port);
  return number === null ? null : { port: number };
}

/** What lacks its half of a pair is passed over; of two with the same id the first counts. */
function readList<Value>(
  answer: unknown,
  name: string,
  read: (entry: Fields) => [id: string | undefined, value: Value | undefined],
): Map<string, Value> | null {
  const list = isObject(answer) && Object.hasOwn(answer, name) ? answer[name] : answer;
  const found = new Map<string, Value>();
  // A server written in Go says null for a list without anything in it.
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

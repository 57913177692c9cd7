import type { Executor } from "../../executors/executor.ts";
import { checkKnown, invalidField, isObject, optionalNumber } from "../../model/input/field-checks.ts";
import { type ClientSettings, checkOptions, type RotaClientOptions } from "../settings.ts";
import { sendByHttp } from "./send-by-http.ts";

export interface RotaWorkerOptions extends Omit<RotaClientOptions, "retry" | "via" | "name" | "taskToken"> {
  /**
   * The agents whose tasks this worker runs: names with one `handler` for all, or an object with a handler for each. A handler
   * is the same function that `rota.agent(…)` takes.
   */
  readonly agents: readonly string[] | Readonly<Record<string, Executor>>;
  /** Runs the tasks of all `agents`, if they are a list. */
  readonly handler?: Executor;
  /** How many tasks run at once. Default: 1, at most 1000. */
  readonly slots?: number;
  /** What the lists of workers show. Default: `worker`. */
  readonly name?: string;
  /** Identifies this process, not its name. Default: a new UUID. Two processes must not share one. */
  readonly instanceId?: string;
  /** Agents may require labels: `{ gpu: "yes" }`. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The version of the worker's code. */
  readonly version?: string;
  /** The language and its version, as the lists of workers show it. */
  readonly runtime?: string;
  /** How long the server waits for a sign of life before others get the tasks of this worker. Default: the server's, 15 000. */
  readonly leaseMs?: number;
  /** How often the worker sends heartbeats, which is also how fast a cancel reaches it. Default: the server's, 5 000. */
  readonly heartbeatMs?: number;
  /** How long running handlers may continue after `stop()`. Then their tasks go back to the queue. Default: 30 000. */
  readonly graceMs?: number;
}

/** The checked options, with every default filled in. */
export interface WorkerSettings {
  readonly client: ClientSettings;
  readonly agents: readonly string[];
  readonly handlerOf: (agentId: string) => Executor | undefined;
  readonly slots: number;
  readonly graceMs: number;
  readonly instanceId: string;
  readonly name: string;
  /** What is sent as it is, if it was given. */
  readonly described: Partial<
    Pick<RotaWorkerOptions, "labels" | "version" | "runtime" | "leaseMs" | "heartbeatMs">
  >;
}

const OWN = [
  "agents",
  "handler",
  "slots",
  "name",
  "instanceId",
  "labels",
  "version",
  "runtime",
  "leaseMs",
  "heartbeatMs",
  "graceMs",
] as const;
const OF_CLIENT = ["url", "key", "timeoutMs", "log", "fetch", "clock", "random"] as const;
const AGENTS_MAX = 100;
const SLOTS_MAX = 1_000;
const DEFAULT_GRACE_MS = 30_000;

/** Throws `invalid_field`. */
export function checkWorkerOptions(options: RotaWorkerOptions): WorkerSettings {
  const fields: Record<string, unknown> = { ...options };
  checkKnown(fields, [...OWN, ...OF_CLIENT]);
  const { labels, version, runtime, leaseMs, heartbeatMs } = options;
  const client = checkOptions(pick(options, OF_CLIENT) as RotaClientOptions);
  const send = options.fetch === undefined ? sendByHttp(client.url) : null;
  return {
    client: send === null ? client : { ...client, send },
    ...checkAgents(options),
    slots: optionalNumber(fields, "slots", { min: 1, max: SLOTS_MAX }) ?? 1,
    graceMs: optionalNumber(fields, "graceMs", { min: 0, max: 86_400_000 }) ?? DEFAULT_GRACE_MS,
    instanceId: options.instanceId ?? crypto.randomUUID(),
    name: options.name ?? "worker",
    described: given({ labels, version, runtime, leaseMs, heartbeatMs }),
  };
}

function checkAgents({ agents, handler }: RotaWorkerOptions): Pick<WorkerSettings, "agents" | "handlerOf"> {
  const isList = Array.isArray(agents);
  if (!isList && !isObject(agents)) {
    throw invalidField("agents", '`agents` must be a list of names, or an object like { "py": handler }');
  }
  const names: readonly string[] = isList ? agents : Object.keys(agents);
  if (names.length === 0 || names.length > AGENTS_MAX) {
    throw invalidField("agents", `\`agents\` must name 1 to ${AGENTS_MAX} agents, not ${names.length}`);
  }
  const handlers = agents as Readonly<Record<string, unknown>>;
  const handlerOf = (agentId: string) =>
    isList ? handler : Object.hasOwn(agents, agentId) ? handlers[agentId] : undefined;
  if (!isList && handler !== undefined) {
    throw invalidField("handler", "`handler` is for a list of `agents`: here each agent has its own");
  }
  for (const name of names) {
    if (typeof handlerOf(name) === "function") continue;
    throw isList
      ? invalidField("handler", "`handler` must be a function, as `rota.agent` takes it")
      : invalidField(`agents.${name}`, `\`agents.${name}\` must be a function, as \`rota.agent\` takes it`);
  }
  return { agents: names, handlerOf: (agentId) => handlerOf(agentId) as Executor | undefined };
}

function pick<T extends object>(from: T, names: readonly string[]): Partial<T> {
  return Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name))) as Partial<T>;
}

function given<T extends object>(fields: T): { [Name in keyof T]?: NonNullable<T[Name]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]?: NonNullable<T[Name]>;
  };
}

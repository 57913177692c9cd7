import { executorHeadersFault } from "./executor-headers.ts";
import {
  folderFault,
  programFault,
  variableNameFault,
  variableNamesFault,
  variablesFault,
} from "./executor-program.ts";
import { executorBaseUrlFault, executorUrlFault } from "./executor-url.ts";
import { checkKnown, invalidField, isObject, quoted } from "./input/field-checks.ts";
import { choiceFault, numberFault, objectFault, textFault } from "./input/value-faults.ts";
import { TURNS_MAX } from "./turn.ts";

/** Header fields that are sent with every call of an executor. */
export type ExecutorHeaders = Readonly<Record<string, string>>;

/** How `tab-action` finds the server of a tab. */
const TAB_RESOLVERS = ["fixed", "pinchtab"] as const;
type TabResolverName = (typeof TAB_RESOLVERS)[number];

/** How `command` reads the output of the program. */
const PROGRAM_RESULTS = ["auto", "json", "text"] as const;
export type ProgramResult = (typeof PROGRAM_RESULTS)[number];

/** Fields of a model request that Rota always sets itself. */
export const RESERVED_MODEL_FIELDS = ["messages", "stream"] as const;

/** An executor that the configuration can name. */
export type ExecutorConfig =
  /** Returns its input. */
  | { readonly type: "echo" }
  /** Workers run it: processes elsewhere that pull tasks. */
  | { readonly type: "worker" }
  /** Posts the task as JSON; the JSON or text of the response is the result. */
  | { readonly type: "http"; readonly url: string; readonly headers?: ExecutorHeaders }
  /** Posts an action to the browser that has the tab: `POST {url}/tabs/{tabId}/action`. */
  | {
      readonly type: "tab-action";
      readonly url: string;
      /**
       * `fixed` (default): `url` serves all tabs. `pinchtab`: `url` is a PinchTab server, which returns the instance that has
       * the tab.
       */
      readonly resolver?: TabResolverName;
      /** For how many seconds `pinchtab` caches the instance of a tab; 5 by default, 0: not at all. */
      readonly cacheSec?: number;
      readonly headers?: ExecutorHeaders;
    }
  /** Calls an agent: `POST {url}/chat`. The last event of the response is the result. */
  | { readonly type: "chat"; readonly url: string; readonly headers?: ExecutorHeaders }
  /** Calls a model with an OpenAI-compatible API: `POST {baseUrl}/chat/completions`. */
  | {
      readonly type: "openai";
      /** Usually ends in `/v1`. */
      readonly baseUrl: string;
      readonly model: string;
      /** The environment variable that holds the key; left out: none is sent. */
      readonly apiKeyEnv?: string;
      /** The system prompt of each task. */
      readonly system?: string;
      readonly temperature?: number;
      /** The most tokens of a response. */
      readonly maxTokens?: number;
      /** How many earlier turns of the session the model gets with a task; 20 by default, 0: none. */
      readonly history?: number;
      /** Further fields of the request, with their names in the API. */
      readonly request?: Readonly<Record<string, unknown>>;
      readonly headers?: ExecutorHeaders;
    }
  /** Runs a program on this machine: it gets the message on stdin, and its stdout is the result. */
  | {
      readonly type: "command";
      /** The program and its arguments. No shell reads them. */
      readonly command: readonly string[];
      /** Its working directory; left out: that of Rota. */
      readonly cwd?: string;
      /** Environment variables of the program, with their values. */
      readonly env?: Readonly<Record<string, string>>;
      /** Names of variables of Rota that the program gets besides `PASSED_VARIABLES`, if they are set. */
      readonly passEnv?: readonly string[];
      /** `auto` (default): JSON if the output is valid JSON, else text. `json`: any other output fails. */
      readonly result?: ProgramResult;
    };

export type ExecutorType = ExecutorConfig["type"];

/** One field of an executor's configuration, besides its `type`. */
export interface ExecutorField {
  readonly required?: true;
  /** Set for fields that agents made over HTTP must not have: the rest of "`field` …", with the reason and the alternative. */
  readonly configurationOnly?: string;
  /**
   * What is wrong with a value, as the rest of "`field` must …"; null: nothing. If the value may contain a secret, the sentence
   * does not repeat it.
   */
  readonly fault: (value: unknown) => string | null;
}

type FieldsOf<Type extends ExecutorType> = Exclude<keyof Extract<ExecutorConfig, { type: Type }>, "type">;

/** The fields of the types that callers may use. An environment variable of the server is none of them. */
export type UserExecutorFields = {
  readonly [Type in Exclude<ExecutorType, "command">]: Exclude<FieldsOf<Type>, "apiKeyEnv">;
};

/** Every type with its fields. The configuration file, the library and HTTP all use this table for their checks. */
export const EXECUTOR_FIELDS: {
  readonly [Type in ExecutorType]: { readonly [Field in FieldsOf<Type>]: ExecutorField };
} = {
  echo: {},
  http: {
    url: { required: true, fault: executorUrlFault },
    headers: { fault: executorHeadersFault },
  },
  "tab-action": {
    url: { required: true, fault: executorBaseUrlFault },
    resolver: { fault: (value) => choiceFault(value, TAB_RESOLVERS) },
    cacheSec: { fault: (value) => numberFault(value, { min: 0, max: 3_600, unit: "seconds" }) },
    headers: { fault: executorHeadersFault },
  },
  chat: {
    url: { required: true, fault: executorBaseUrlFault },
    headers: { fault: executorHeadersFault },
  },
  openai: {
    baseUrl: { required: true, fault: executorBaseUrlFault },
    model: { required: true, fault: textFault },
    apiKeyEnv: {
      fault: variableNameFault,
      configurationOnly:
        'is allowed only in the configuration file, since it names an environment variable of the server: send the key in `headers`, like {"authorization": "Bearer …"}',
    },
    system: { fault: textFault },
    temperature: { fault: (value) => numberFault(value, { min: 0, max: 2 }) },
    maxTokens: { fault: (value) => numberFault(value, { min: 1, max: 10_000_000, integer: true }) },
    history: { fault: (value) => numberFault(value, { min: 0, max: TURNS_MAX, integer: true }) },
    request: { fault: (value) => objectFault(value, RESERVED_MODEL_FIELDS) },
    headers: { fault: executorHeadersFault },
  },
  command: {
    command: { required: true, fault: programFault },
    cwd: { fault: folderFault },
    env: { fault: variablesFault },
    passEnv: { fault: variableNamesFault },
    result: { fault: (value) => choiceFault(value, PROGRAM_RESULTS) },
  },
  worker: {},
};

export const EXECUTOR_TYPES = Object.keys(EXECUTOR_FIELDS) as readonly ExecutorType[];

/** Types that only the configuration may use: a caller who may create agents must not be able to run programs here. */
const CONFIGURATION_ONLY: readonly ExecutorType[] = ["command"];

/** Types that callers may use, over HTTP and with `rota.agents`. */
const USER_EXECUTOR_TYPES = EXECUTOR_TYPES.filter((type) => !CONFIGURATION_ONLY.includes(type));

export interface CheckExecutorOptions {
  /** The name of the field in messages, such as `agents.research.executor`; `executor` by default. */
  readonly name?: string | undefined;
  /** Whether it comes from a caller, who may use fewer types and fields than the configuration. */
  readonly byUser?: boolean;
}

/** Checks the configuration of an executor. Throws `invalid_field`. */
export function checkExecutorConfig(
  given: unknown,
  { name = "executor", byUser = false }: CheckExecutorOptions = {},
): ExecutorConfig {
  if (!isObject(given)) {
    throw invalidField(
      name,
      `\`${name}\` must be an object with a \`type\`, like {"type": "echo"}, or in a program a function, not ${quoted(given)}`,
    );
  }
  // A copy, so that the caller cannot change it after the check.
  const config = { ...given };
  const type = checkType(config["type"], { name, byUser });
  const fields: Readonly<Record<string, ExecutorField>> = EXECUTOR_FIELDS[type];
  checkKnown(config, ["type", ...Object.keys(fields)], `${name}.`);
  for (const [field, { required, configurationOnly, fault }] of Object.entries(fields)) {
    const value = config[field];
    if (value === undefined && required === undefined) continue;
    const path = `${name}.${field}`;
    if (byUser && configurationOnly !== undefined) {
      throw invalidField(path, `\`${path}\` ${configurationOnly}`);
    }
    const found = fault(value);
    if (found !== null) throw invalidField(path, `\`${path}\` must ${found}`);
  }
  return config as unknown as ExecutorConfig;
}

/** What is wrong with `worker` as the executor of a kind of tasks, configured as `name`. */
export function workerByKindFault(name: string): string {
  return `\`${name}.type\` must not be worker: workers run agents, not kinds of tasks. Write \`agents.<id>.executor\`: {"type": "worker"} for each agent that workers run`;
}

function checkType(type: unknown, { name, byUser }: { name: string; byUser: boolean }): ExecutorType {
  const path = `${name}.type`;
  const isKnown = typeof type === "string" && Object.hasOwn(EXECUTOR_FIELDS, type);
  if (!isKnown) {
    const choices = byUser ? USER_EXECUTOR_TYPES : EXECUTOR_TYPES;
    throw invalidField(path, `\`${path}\` must ${choiceFault(type, choices)}`);
  }
  if (byUser && CONFIGURATION_ONLY.includes(type as ExecutorType)) {
    throw invalidField(
      path,
      `\`${path}\` must not be ${type}: only the configuration file can make Rota run programs; over HTTP write one of ${USER_EXECUTOR_TYPES.join(", ")}`,
    );
  }
  return type as ExecutorType;
}

import { executorHeadersFault } from "./executor-headers.ts";
import { executorBaseUrlFault, executorUrlFault } from "./executor-url.ts";
import { checkKnown, invalidField, isObject, type NumberRange, or, shown } from "./field-checks.ts";
import { nearestName } from "./nearest-name.ts";

/** Header fields that are sent with every call of an executor. */
export type ExecutorHeaders = Readonly<Record<string, string>>;

/** How `tab-action` finds out whom to ask for a tab. */
const TAB_RESOLVERS = ["fixed", "pinchtab"] as const;
type TabResolverName = (typeof TAB_RESOLVERS)[number];

/** An executor that the configuration can name. */
export type ExecutorConfig =
  /** Answers its input. */
  | { readonly type: "echo" }
  /** Posts the task as JSON; the JSON or text answer is the result. */
  | { readonly type: "http"; readonly url: string; readonly headers?: ExecutorHeaders }
  /** Posts an action to the browser that has the tab: `POST {url}/tabs/{tabId}/action`. */
  | {
      readonly type: "tab-action";
      readonly url: string;
      /**
       * `fixed` (default): `url` does the actions of all tabs. `pinchtab`: `url` is a PinchTab server, which is asked for
       * the instance that has the tab.
       */
      readonly resolver?: TabResolverName;
      /** For how many seconds `pinchtab` remembers which instance has which tab; 5 unless told, 0: not at all. */
      readonly cacheSec?: number;
      readonly headers?: ExecutorHeaders;
    };

export type ExecutorType = ExecutorConfig["type"];

/** One field of an executor's configuration, besides its `type`. */
export interface ExecutorField {
  readonly required?: true;
  /**
   * What is wrong with a value, as the rest of "`field` must …"; null when nothing is. Where the value may hold a secret,
   * the sentence does not repeat it.
   */
  readonly fault: (value: unknown) => string | null;
}

type FieldsOf<Type extends ExecutorType> = Exclude<keyof Extract<ExecutorConfig, { type: Type }>, "type">;

/** Every type there is, with its fields: the configuration file, the library and HTTP all check by this table. */
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
};

export const EXECUTOR_TYPES = Object.keys(EXECUTOR_FIELDS) as readonly ExecutorType[];

/**
 * Refuses what describes no executor, wherever it comes from: throws `invalid_field`. `name` is what the field that holds
 * it is called, such as `agents.research.executor`.
 */
export function checkExecutorConfig(given: unknown, name = "executor"): ExecutorConfig {
  if (!isObject(given)) {
    throw invalidField(
      name,
      `\`${name}\` must be a function or an object with a \`type\`, not ${shown(given)}`,
    );
  }
  // A copy, so that what was checked is what is used.
  const config = { ...given };
  const type = checkType(config["type"], name);
  const fields: Readonly<Record<string, ExecutorField>> = EXECUTOR_FIELDS[type];
  checkKnown(config, ["type", ...Object.keys(fields)], `${name}.`);
  for (const [field, { required, fault }] of Object.entries(fields)) {
    const value = config[field];
    if (value === undefined && required === undefined) continue;
    const found = fault(value);
    if (found !== null) throw invalidField(`${name}.${field}`, `\`${name}.${field}\` must ${found}`);
  }
  return config as unknown as ExecutorConfig;
}

function checkType(type: unknown, name: string): ExecutorType {
  if (typeof type === "string" && Object.hasOwn(EXECUTOR_FIELDS, type)) return type as ExecutorType;
  throw invalidField(`${name}.type`, `\`${name}.type\` must ${choiceFault(type, EXECUTOR_TYPES)}`);
}

/** What is wrong with a value that must be one of some names, with the one that was probably meant. */
export function choiceFault(value: unknown, choices: readonly string[]): string | null {
  if (typeof value === "string" && choices.includes(value)) return null;
  const nearest = typeof value === "string" ? nearestName(value, choices) : undefined;
  const hint = nearest === undefined ? "" : `: did you mean \`${nearest}\`?`;
  return `be ${or(choices)}, not ${shown(value)}${hint}`;
}

function numberFault(
  value: unknown,
  { min, max, unit }: Required<Omit<NumberRange, "integer">>,
): string | null {
  if (typeof value === "number" && value >= min && value <= max) return null;
  return `be a number of ${unit} from ${min} to ${max}, not ${shown(value)}`;
}

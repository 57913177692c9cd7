import type { Log } from "../model/log.ts";
import type { TaskLogLevel } from "../model/task-log.ts";
import { errorText } from "./attempt-error.ts";

type Fields = Parameters<Log["info"]>[0];

export interface KeptLogOptions {
  readonly keep: (level: TaskLogLevel, text: string) => void;
  /** Hides the secrets that the task was given, wherever they stand in a text. */
  readonly hide: (text: string) => string;
}

/** A log whose lines are kept with the task as well: the sentence, and what the call adds to it as JSON. */
export function keptLog(log: Log, options: KeptLogOptions): Log {
  const { keep, hide } = options;
  const at =
    (level: TaskLogLevel): Log["info"] =>
    (fields, message) => {
      const text = lineText(fields, message);
      const hidden = hide(text);
      if (hidden === text) log[level](fields, message);
      else log[level](hiddenFields(fields, hide), typeof message === "string" ? hide(message) : message);
      keep(level, hidden);
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => keptLog(log.child(hiddenFields(fields, hide)), options),
  };
}

/** Those without a secret stay what they are; others become what their JSON says. */
function hiddenFields(fields: Fields, hide: (text: string) => string): Fields {
  if (typeof fields === "string") return hide(fields) as unknown as Fields;
  const text = fieldsText(fields);
  const hidden = hide(text);
  if (hidden === text) return fields;
  try {
    return JSON.parse(hidden);
  } catch {
    return { fields: hidden };
  }
}

/** Never throws, whatever an executor hands over: a line of the log must not fail its task. */
function lineText(fields: unknown, message: unknown): string {
  // As pino takes it: a sentence alone.
  if (typeof fields === "string" && message === undefined) return fields;
  const sentence = typeof message === "string" ? message : "";
  const added = fieldsText(fields);
  return added === "" || sentence === "" ? sentence + added : `${sentence} ${added}`;
}

function fieldsText(fields: unknown): string {
  try {
    const text = JSON.stringify(fields, (_key, value) => {
      if (value instanceof Error) return errorText(value);
      return typeof value === "bigint" ? String(value) : value;
    });
    return text === undefined || text === "{}" || text === "null" ? "" : text;
  } catch {
    return "";
  }
}

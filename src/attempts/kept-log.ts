import type { Log } from "../model/log.ts";
import type { TaskLogLevel } from "../model/task-log.ts";
import { errorText } from "./attempt-error.ts";

type Fields = Parameters<Log["info"]>[0];

export interface KeptLogOptions {
  readonly keep: (level: TaskLogLevel, text: string) => void;
  /** Replaces the task's secrets in a text. */
  readonly hide: (text: string) => string;
}

/** A log whose lines are also stored with the task: the message, and its fields as JSON. */
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

/** Fields without a secret stay unchanged; others are parsed from their redacted JSON. */
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

/** Never throws, for any argument: a log line must not fail its task. */
function lineText(fields: unknown, message: unknown): string {
  // Like pino, accepts a message without fields.
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

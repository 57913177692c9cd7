import type { Log } from "../model/log.ts";
import type { TaskLogLevel } from "../model/task-log.ts";
import { errorText } from "./attempt-error.ts";

/** A log whose lines are also stored with the task: the message, and its fields as JSON. */
export function keptLog(log: Log, keep: (level: TaskLogLevel, text: string) => void): Log {
  const at =
    (level: TaskLogLevel): Log["info"] =>
    (fields, message) => {
      log[level](fields, message);
      keep(level, lineText(fields, message));
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => keptLog(log.child(fields), keep),
  };
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

import { invalidField } from "./input/field-checks.ts";

/**
 * The log of Rota. It has the interface of pino, so that a pino logger can be used as it is: fields first, then the message.
 */
export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
  /** A log that adds these fields to every line. */
  child(fields: Readonly<Record<string, unknown>>): Log;
}

/** A log with these methods but without children, which takes the message first, such as `console`. */
export type ConsoleLog = Readonly<Record<"debug" | "info" | "warn" | "error", (...data: unknown[]) => void>>;

const METHODS = ["debug", "info", "warn", "error"] as const;

/** Converts a log of either kind. Throws `invalid_field` for anything else. */
export function asLog(given: Log | ConsoleLog): Log {
  const log = given as Partial<Log>;
  if (METHODS.some((method) => typeof log?.[method] !== "function")) {
    throw invalidField(
      "log",
      "`log` must have the methods debug, info, warn and error, as pino loggers and console do",
    );
  }
  return typeof log.child === "function" ? (given as Log) : sentenceFirst(given as ConsoleLog, {});
}

function sentenceFirst(log: ConsoleLog, inherited: Readonly<Record<string, unknown>>): Log {
  const at =
    (method: (typeof METHODS)[number]): Log["info"] =>
    (given, message) => {
      const fields = { ...inherited, ...given };
      log[method](message, ...(Object.keys(fields).length === 0 ? [] : [fields]));
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => sentenceFirst(log, { ...inherited, ...fields }),
  };
}

/** Log levels: each includes those after it. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Writes nothing: the default of the library. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};

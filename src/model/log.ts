/**
 * Where Rota writes what happens inside: pino's shape, so that a pino logger can be handed over as it is. The fields
 * come first, the sentence second.
 */
export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
  /** A log that adds these fields to every line. */
  child(fields: Readonly<Record<string, unknown>>): Log;
}

/** How much of it is written: a level and those after it. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Says nothing: what the library uses when nobody hands it a log. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};

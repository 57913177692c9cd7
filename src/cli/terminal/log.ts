import { pino } from "pino";
import { LOG_LEVELS, type Log, type LogLevel } from "../../model/log.ts";
import { isExpectedError } from "./expected-error.ts";
import { terminalLog } from "./terminal-log.ts";

/** The log of a server, whose level can change while it runs. */
export interface ServerLog extends Log {
  level: LogLevel;
}

export interface CreateLogOptions {
  readonly level: LogLevel;
  /** The output, if it is a terminal. Default: stderr. */
  readonly stream?: NodeJS.WriteStream;
}

/** Text for people if stderr is a terminal, else JSON lines. It uses stderr, since stdout is for results of commands. */
export function createLog({ level, stream = process.stderr }: CreateLogOptions): ServerLog {
  const threshold = { level };
  const log = above(threshold, stream.isTTY ? terminalLog(stream) : jsonLog());
  return Object.defineProperty(log, "level", {
    get: () => threshold.level,
    set: (next: LogLevel) => {
      threshold.level = next;
    },
  }) as ServerLog;
}

function jsonLog(): Log {
  return pino(
    {
      level: "debug",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: shownError },
    },
    // Synchronous: the last line before the process ends is the one that matters.
    pino.destination({ dest: 2, sync: true }),
  );
}

/** An error with its stack, to find its cause. One that is expected, such as that of a server that is away, has none. */
function shownError(error: unknown): unknown {
  if (isExpectedError(error)) return { type: error.name, message: error.message };
  return error instanceof Error ? pino.stdSerializers.err(error) : error;
}

/** Forwards entries at or above the level. All children share one level: those of pino keep the level of their creation. */
function above(threshold: { level: LogLevel }, sink: Log): Log {
  const at =
    (level: Exclude<LogLevel, "silent">): Log["info"] =>
    (fields, message) => {
      if (LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(threshold.level)) sink[level](fields, message);
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => above(threshold, sink.child(fields)),
  };
}

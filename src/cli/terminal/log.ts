import { pino } from "pino";
import { LOG_LEVELS, type Log, type LogLevel } from "../../model/log.ts";
import { terminalLog } from "./terminal-log.ts";

/** The log of a server, whose level can change while it runs. */
export interface ServerLog extends Log {
  level: LogLevel;
}

export interface CreateLogOptions {
  readonly level: LogLevel;
  /** Where the lines go when that is a terminal; left out: stderr. */
  readonly stream?: NodeJS.WriteStream;
}

/** Lines for people where stderr is a terminal, else JSON lines. On stderr: stdout belongs to what a command answers. */
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
      serializers: { error: pino.stdSerializers.err },
    },
    // Written at once: the last line before an end is the one that matters.
    pino.destination({ dest: 2, sync: true }),
  );
}

/** Passes on what reaches the level. One level for all children: pino's keep the one they were made with. */
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

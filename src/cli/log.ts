import { type Logger, pino } from "pino";

/** JSON lines on stderr: stdout belongs to what a command answers. */
export function createLog(): Logger {
  return pino(
    {
      level: "info",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      serializers: { error: pino.stdSerializers.err },
    },
    // Written at once: the last line before an end is the one that matters.
    pino.destination({ dest: 2, sync: true }),
  );
}

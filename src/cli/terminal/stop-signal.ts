import { constants } from "node:os";
import { isRunByNpm } from "../../config/process-environment.ts";

/**
 * How long further signals count as an echo of the first. Under npm, Ctrl-C and other signals to the whole process group arrive
 * twice: directly, and forwarded by npm.
 */
const ECHO_MS = 500;

/** Resolves with the first SIGTERM or SIGINT. A second one ends the process at once. */
export function stopSignal(): Promise<NodeJS.Signals> {
  const echoMs = isRunByNpm() ? ECHO_MS : 0;
  return new Promise((resolve) => {
    let firstAt: number | null = null;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (firstAt === null) {
        firstAt = performance.now();
        resolve(signal);
      } else if (performance.now() - firstAt >= echoMs) {
        process.exit(signalExitCode(signal));
      }
    };
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  });
}

/** The exit code of a process that a signal ended, by the convention of shells. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

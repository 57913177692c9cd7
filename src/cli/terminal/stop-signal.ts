import { constants } from "node:os";
import { isRunByNpm } from "../../config/process-environment.ts";

/**
 * How long after the first signal further ones are taken for its echo: under npm, Ctrl-C and whatever else is sent to all
 * processes of a group arrive twice, once by themselves and once handed on by npm.
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

/** What a process ends with that a signal ended, as shells count. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

import { constants } from "node:os";

/**
 * How long after the first signal further ones are taken for its echo. Ctrl-C under `npm start` arrives twice: from the
 * terminal, and handed on by npm.
 */
const ECHO_MS = 500;

/** Resolves with the first SIGTERM or SIGINT. A second one ends the process at once. */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstAt: number | null = null;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (firstAt === null) {
        firstAt = performance.now();
        resolve(signal);
      } else if (performance.now() - firstAt > ECHO_MS) {
        process.exit(128 + constants.signals[signal]);
      }
    };
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  });
}

import type { ExitCode } from "./exit-code.ts";
import { stopSignal } from "./stop-signal.ts";

export interface Interruption {
  /** Fires with the first SIGINT or SIGTERM; a second one ends the process at once. */
  readonly signal: AbortSignal;
  /** The exit code of a command that was interrupted before its end. */
  exitCode(): ExitCode;
  /** The exit code of a command that runs until Ctrl-C: that is its normal end. */
  exitCodeOfEndless(): ExitCode;
}

/** Lets a command end by itself after SIGINT or SIGTERM. */
export function interruption(): Interruption {
  const controller = new AbortController();
  let code: ExitCode = 130;
  void stopSignal().then((signal) => {
    if (signal === "SIGTERM") code = 143;
    controller.abort();
  });
  return {
    signal: controller.signal,
    exitCode: () => code,
    exitCodeOfEndless: () => (controller.signal.aborted && code === 143 ? code : 0),
  };
}

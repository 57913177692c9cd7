import type { ExitCode } from "./exit-code.ts";
import { stopSignal } from "./stop-signal.ts";

export interface Interruption {
  /** Fires with the first SIGINT or SIGTERM; a second one ends the process at once. */
  readonly signal: AbortSignal;
  /** What a command ends with that was interrupted in the middle of something. */
  exitCode(): ExitCode;
  /** What a command ends with that goes on until Ctrl-C, which is no interruption to it. */
  exitCodeOfEndless(): ExitCode;
}

/** Lets a command that is told to stop come to an end by itself. */
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

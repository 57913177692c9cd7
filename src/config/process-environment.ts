/** Environment variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A copy of the current variables of this process. They contain keys, and child processes inherit them. */
export function processEnvironment(): Environment {
  return { ...process.env };
}

/** Whether npm started this process, and forwards signals to it. */
export function isRunByNpm(): boolean {
  return process.env["npm_lifecycle_event"] !== undefined;
}

/** Whether `npx` started this process. */
export function isRunByNpx(): boolean {
  return process.env["npm_lifecycle_event"] === "npx";
}

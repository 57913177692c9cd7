/** Variables, as a process has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Those of this process as they are now: keys are in them, and programs inherit them. */
export function processEnvironment(): Environment {
  return { ...process.env };
}

/** Whether npm started this process, and hands signals on to it. */
export function isRunByNpm(): boolean {
  return process.env["npm_lifecycle_event"] !== undefined;
}

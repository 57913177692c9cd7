/** Variables, as a process has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Those of this process as they are now: keys are in them, and programs inherit them. */
export function processEnvironment(): Environment {
  return { ...process.env };
}

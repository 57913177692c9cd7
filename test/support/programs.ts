import { readFileSync } from "node:fs";
import { onTestFinished } from "vitest";
import { until } from "../../src/testing/signals.ts";

/** The command line of a program in JavaScript. */
export function nodeProgram(source: string, ...args: string[]): string[] {
  return [process.execPath, "-e", source, ...args];
}

/** The command line of a program for the shell. */
export function shellProgram(source: string, ...args: string[]): string[] {
  return ["/bin/sh", "-c", source, "sh", ...args];
}

/** Whether a process does anything any more. One that has ended stays listed until its parent reads its exit code. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    if (process.platform !== "linux") return true;
    const state = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "")[0];
    return state !== "Z" && state !== "X";
  } catch {
    return false;
  }
}

/** Waits until a process has ended. */
export async function untilEnded(pid: number): Promise<void> {
  await until(() => !isRunning(pid), `process ${pid} to end`);
}

/** Ends a process with the test, whatever the test finds out. */
export function endWithTest(pid: number): number {
  onTestFinished(() => {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended, as it should.
    }
  });
  return pid;
}

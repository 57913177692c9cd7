import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { isObject } from "../../model/input/field-checks.ts";
import type { SubmitInput } from "../../model/input/submit-input.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { jsonFlag, momentFlag, numberFlag, spanFlag } from "./flag-values.ts";

/** The fields of a task, as flags. */
export interface TaskFlags {
  readonly message?: string;
  readonly instruction?: string;
  readonly action?: string;
  readonly payload?: string;
  readonly file?: string;
  readonly agent?: string;
  readonly tab?: string;
  readonly ref?: string;
  readonly selector?: string;
  readonly params?: string;
  readonly priority?: string;
  readonly deadline?: string;
  readonly timeout?: string;
  readonly runAt?: string;
  readonly lane?: string;
  readonly session?: string;
  readonly concurrencyKey?: string;
  readonly retries?: string;
  readonly callback?: string;
  readonly preemptible?: true;
  readonly metadata?: string;
}

type FieldOf = (value: string, now: number) => Record<string, unknown>;

/** The field that each flag with a value sets. */
const FIELDS: Readonly<Record<Exclude<keyof TaskFlags, "file" | "preemptible">, FieldOf>> = {
  message: (message) => ({ message }),
  instruction: (instruction) => ({ instruction }),
  action: (action) => ({ action }),
  payload: (json) => ({ payload: jsonFlag("--payload", json) }),
  agent: (agentId) => ({ agentId }),
  tab: (tabId) => ({ tabId }),
  ref: (ref) => ({ ref }),
  selector: (selector) => ({ selector }),
  params: (json) => ({ params: jsonFlag("--params", json) }),
  priority: (priority) => ({ priority: numberFlag(priority) }),
  deadline: (moment, now) => ({ deadline: momentFlag(moment, now) }),
  timeout: (span) => ({ timeout: spanFlag(span) }),
  runAt: (moment, now) => ({ runAt: momentFlag(moment, now) }),
  lane: (lane) => ({ lane }),
  session: (sessionKey) => ({ sessionKey }),
  concurrencyKey: (concurrencyKey) => ({ concurrencyKey }),
  retries: (maxRetries) => ({ retryPolicy: { maxRetries: numberFlag(maxRetries) } }),
  callback: (callbackUrl) => ({ callbackUrl }),
  metadata: (json) => ({ metadata: jsonFlag("--metadata", json) }),
};

/** Flags whose names differ from their fields. */
export const fieldFlags: Readonly<Record<string, string>> = {
  agentId: "--agent",
  tabId: "--tab",
  runAt: "--run-at",
  sessionKey: "--session",
  concurrencyKey: "--concurrency-key",
  callbackUrl: "--callback",
  "retryPolicy.maxRetries": "--retries",
};

/** The task that the flags describe. They override the task of the file, if there is one. The server checks the values. */
export async function taskInput(flags: TaskFlags, now: number): Promise<SubmitInput> {
  const given = flags.file === undefined ? {} : await readTask(flags.file);
  const fields = Object.entries(FIELDS).flatMap(([flag, fieldOf]) => {
    const value = flags[flag as keyof typeof FIELDS];
    return value === undefined ? [] : [fieldOf(value, now)];
  });
  const preemptible = flags.preemptible ? [{ preemptible: true }] : [];
  return Object.assign({}, given, ...fields, ...preemptible);
}

async function readTask(file: string): Promise<Readonly<Record<string, unknown>>> {
  const from = file === "-" ? "stdin" : file;
  const content = await readText(file).catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === "ENOENT" ? "there is no such file" : error.message;
    throw new UsageError(`cannot read ${from}: ${reason}`);
  });
  let task: unknown;
  try {
    task = JSON.parse(content.replace(/^\ufeff/, ""));
  } catch (error) {
    throw new UsageError(`${from} is not JSON: ${(error as Error).message}`);
  }
  if (isObject(task)) return task;
  throw new UsageError(`${from} must hold one task, like {"message": "hello"}`);
}

function readText(file: string): Promise<string> {
  return file === "-" ? text(process.stdin) : readFile(file, "utf8");
}

import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { isObject } from "../../model/input/field-checks.ts";
import type { SubmitInput } from "../../model/input/submit-input.ts";
import { TASK } from "../../model/input/task-schema.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { inputOfFlags } from "./input-flags.ts";

/** The task that the flags describe. They override the task of the file, if there is one. The server checks the values. */
export async function taskInput(flags: object, now: number): Promise<SubmitInput> {
  const { file } = flags as { readonly file?: string };
  const given = file === undefined ? {} : await readTask(file);
  return { ...given, ...inputOfFlags(TASK.fields, flags, now) } as unknown as SubmitInput;
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

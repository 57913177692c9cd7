import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { within } from "../clock/within.ts";
import type { Clock } from "../model/clock.ts";
import type { ExecutorConfig, ProgramResult } from "../model/executor-config.ts";
import { PASSED_VARIABLES } from "../model/executor-program.ts";
import type { Task } from "../model/task.ts";
import { type AnswerText, excerpt, readJson, resultOfText } from "./answer-text.ts";
import { attemptOf } from "./call-headers.ts";
import { CommandGroup } from "./command-group.ts";
import { keepBeginning, logLines } from "./command-output.ts";
import { PermanentError } from "./errors.ts";
import type { Executor, ExecutorContext } from "./executor.ts";
import { ReportedUsage } from "./reported-usage.ts";
import { inputOf } from "./task-input.ts";

/** How long child processes may still write after the program has ended: a `tee` may have a line left. */
const LEFTOVER_MS = 1_000;

/** Reasons why a program cannot be started that a retry would not change. */
const PERMANENT_REASONS: Readonly<Record<string, string>> = {
  EACCES: "it may not be executed",
  E2BIG: "its arguments and variables are too long",
  ENOENT: "there is no such program",
  ENOEXEC: "it is no program",
  ENOTDIR: "a part of its path is no folder",
};

export interface CommandExecutorOptions extends Omit<Extract<ExecutorConfig, { type: "command" }>, "type"> {
  readonly clock: Clock;
  /** The environment variables of Rota. The program gets only some of them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Runs a program: the work is its stdin, and its stdout is the result. The processes that it starts end with it. */
export function commandExecutor(options: CommandExecutorOptions): Executor {
  const { clock, result = "auto" } = options;
  const usage = new ReportedUsage();
  return async (task, context) => {
    const { signal, log } = context;
    signal.throwIfAborted();
    const { program, pid, exited, closed } = await start(task, context, options);
    const group = new CommandGroup(pid, clock);
    const stop = () => void group.end();
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
    const output = keepBeginning(program.stdout, context.holds);
    const complaint = logLines(program.stderr, log);

    const exit = await exited;
    if (!signal.aborted) await within({ clock, ms: LEFTOVER_MS, work: closed, onLate: () => undefined });
    signal.removeEventListener("abort", stop);
    for (const pipe of [program.stdin, program.stdout, program.stderr]) pipe.destroy();
    const ended = group.end();
    if (signal.aborted) await ended;
    signal.throwIfAborted();
    checkExit(exit, complaint());
    const answer = resultOf(output(), result);
    usage.ofAnswer(answer, context);
    return answer;
  };
}

interface StartedProgram {
  readonly program: ChildProcessWithoutNullStreams;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** Resolves once it has exited and all its pipes are closed. */
  readonly closed: Promise<unknown>;
}

interface Exit {
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

async function start(
  task: Task,
  context: ExecutorContext,
  options: CommandExecutorOptions,
): Promise<StartedProgram> {
  const { command, cwd } = options;
  const [file = "", ...args] = command;
  try {
    const program = spawn(file, args, {
      cwd,
      env: { ...variablesFor(options), ...variablesOf(task, context) },
      // The leader of a group of its own, so that the processes it starts can be ended with it.
      detached: true,
      windowsHide: true,
    });
    const exited = new Promise<Exit>((resolve) =>
      program.once("exit", (code, signal) => resolve({ code, signal })),
    );
    const closed = new Promise((resolve) => program.once("close", resolve));
    // A program need not read its stdin. Its exit code decides about the attempt, not errors of its pipes.
    for (const pipe of [program.stdin, program.stdout, program.stderr]) pipe.on("error", () => {});
    program.stdin.end(stdinOf(task));
    await once(program, "spawn");
    return { program, pid: program.pid as number, exited, closed };
  } catch (error) {
    throw cannotRun(error as NodeJS.ErrnoException, options);
  }
}

/** The variables of Rota include its own secrets and those of other agents, so the program gets only a few. */
function variablesFor({ environment, env, passEnv = [] }: CommandExecutorOptions): Record<string, string> {
  const passed: [string, string][] = [...PASSED_VARIABLES, ...passEnv].flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(passed), ...env };
}

function variablesOf(task: Task, { tenantId, taskToken }: ExecutorContext): Record<string, string> {
  return {
    ROTA_TASK_ID: task.taskId,
    ROTA_AGENT_ID: task.agentId,
    ROTA_TENANT: tenantId,
    ROTA_ATTEMPT: String(attemptOf(task)),
    ROTA_TASK_TOKEN: taskToken,
    ...(task.requestId === undefined ? {} : { ROTA_REQUEST_ID: task.requestId }),
  };
}

/** Text as it is, anything else as JSON. */
function stdinOf(task: Task): string {
  const isText = task.kind === "instruction" || task.kind === "message";
  const input = inputOf(task);
  return isText ? String(input) : JSON.stringify(input);
}

function cannotRun(error: NodeJS.ErrnoException, { command, cwd }: CommandExecutorOptions): Error {
  const what = `cannot run "${command[0]}"`;
  if (error.code === "ENOENT" && cwd !== undefined && !existsSync(cwd)) {
    return new PermanentError(`${what}: there is no folder "${cwd}"`, { cause: error });
  }
  const reason = PERMANENT_REASONS[error.code ?? ""];
  return reason === undefined
    ? new Error(`${what}: ${error.message}`, { cause: error })
    : new PermanentError(`${what}: ${reason}`, { cause: error });
}

function checkExit({ code, signal }: Exit, complaint: string): void {
  if (code === 0) return;
  const what = signal === null ? `exit code ${code}` : `killed by signal ${signal}`;
  throw new Error(complaint === "" ? what : `${what}: ${complaint}`);
}

function resultOf({ text, truncated }: AnswerText, result: ProgramResult): unknown {
  const answer = { text: truncated ? text : text.replace(/\r?\n$/, ""), truncated };
  if (result === "json" && !truncated && readJson(answer.text) === null) {
    throw new Error(`the program wrote no JSON: ${excerpt(answer.text)}`);
  }
  return resultOfText(answer, { json: result !== "text" });
}

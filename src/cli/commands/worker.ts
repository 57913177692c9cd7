import { hostname } from "node:os";
import { Command } from "commander";
import { RotaWorker } from "../../client/index.ts";
import { keepAliveClock } from "../../clock/keep-alive-clock.ts";
import { clientAddress } from "../../config/client-settings.ts";
import { processEnvironment } from "../../config/process-environment.ts";
import { commandExecutor } from "../../executors/command.ts";
import { hasProgram } from "../../executors/has-program.ts";
import type { ExecutorConfig } from "../../model/executor-config.ts";
import { LOG_LEVELS, type LogLevel } from "../../model/log.ts";
import { VERSION } from "../../version.ts";
import { numberFlag, secondsFlag } from "../flags/flag-values.ts";
import { namingFlags } from "../flags/naming-flags.ts";
import { type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { createLog } from "../terminal/log.ts";
import { print } from "../terminal/print.ts";
import { stopSignal } from "../terminal/stop-signal.ts";
import { UsageError } from "../terminal/usage-error.ts";

interface WorkerFlags extends ServerFlags {
  readonly agent: readonly string[];
  readonly slots: string;
  readonly name?: string;
  readonly label?: readonly string[];
  readonly cwd?: string;
  readonly passEnv?: readonly string[];
  readonly result: string;
  readonly grace: string;
  readonly logLevel: string;
}

type CommandConfig = Extract<ExecutorConfig, { type: "command" }>;
type ResultKind = NonNullable<CommandConfig["result"]>;

const RESULTS: readonly string[] = ["auto", "text", "json"] satisfies ResultKind[];
const FIELD_FLAGS = { agents: "--agent", slots: "--slots", name: "--name", url: "--url", key: "--key" };

const EXAMPLES = `
Examples:
  rota worker --agent shout -- tr a-z A-Z
  rota worker --agent crawl --slots 4 --pass-env OPENAI_API_KEY -- ./crawl.sh
If the server has API keys, set ROTA_KEY: rota keys create --role worker --name laptop --agents shout`;

/** `rota worker --agent py -- ./handler.sh`: a worker whose handler is a program, with input and output as the executor `command`. */
export function workerCommand(): Command {
  const several = (value: string, before: readonly string[] = []) => [...before, value];
  const command = new Command("worker")
    .description("Run tasks of a server with a program on this machine, until SIGTERM or Ctrl-C.")
    .usage("--agent <id> [options] -- <command...>")
    .argument("<command...>", "the program and its arguments: the work is its stdin, its stdout the result")
    .requiredOption("--agent <id>", "run the tasks of this agent; may be repeated", several)
    .option("--slots <number>", "how many tasks run at once", "1")
    .option("--name <text>", "what the lists of workers show (default: the name of this machine)")
    .option("--label <name=value>", "a label that agents may require; may be repeated", several)
    .option("--cwd <directory>", "where the program runs (default: here)")
    .option("--pass-env <name>", "a variable that the program gets; may be repeated", several)
    .option("--result <form>", "how stdout is read: auto, text or json", "auto")
    .option("--grace <seconds>", "how long running tasks may continue after SIGTERM", "30")
    .option("--log-level <level>", "debug, info, warn, error or silent", "info")
    .passThroughOptions();
  return withServerOptions(command).addHelpText("after", EXAMPLES).action(run);
}

async function run(program: readonly string[], flags: WorkerFlags): Promise<void> {
  const log = createLog({ level: logLevelOf(flags.logLevel) });
  const worker = createWorker(program, flags, log);
  const signalled = stopSignal();
  const ended = worker.run();
  void signalled.then((signal) => {
    log.info({ signal }, "stopping: running tasks may end");
    return worker.stop();
  });
  await Promise.race([worker.start(), ended]);
  if (worker.workerId !== null) {
    const shown = { workerId: worker.workerId, agents: flags.agent };
    print(
      flags.json
        ? JSON.stringify(shown)
        : `Worker ${worker.workerId} waits for tasks of ${flags.agent.join(", ")}`,
    );
  }
  await ended;
  log.info({}, "stopped");
}

function createWorker(
  program: readonly string[],
  flags: WorkerFlags,
  log: ReturnType<typeof createLog>,
): RotaWorker {
  const labels = labelsOf(flags.label ?? []);
  const environment = processEnvironment();
  checkProgram(program, flags, environment["PATH"]);
  try {
    return new RotaWorker({
      ...clientAddress(flags),
      agents: flags.agent,
      handler: commandExecutor({
        command: program,
        result: resultOf(flags.result),
        ...(flags.cwd === undefined ? {} : { cwd: flags.cwd }),
        passEnv: flags.passEnv ?? [],
        clock: keepAliveClock,
        environment,
      }),
      slots: numberFlag(flags.slots) as number,
      name: flags.name ?? hostname(),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      version: VERSION,
      runtime: `rota worker ${VERSION}`,
      graceMs: secondsFlag("--grace", flags.grace) * 1_000,
      log,
    });
  } catch (error) {
    throw namingFlags(error, FIELD_FLAGS);
  }
}

/** A program that cannot be started fails each task for good: a misspelled one would end all that wait. */
function checkProgram(
  [command = ""]: readonly string[],
  { cwd }: WorkerFlags,
  path: string | undefined,
): void {
  if (hasProgram({ command, path, ...(cwd === undefined ? {} : { cwd }) })) return;
  throw new UsageError(`cannot run "${command}": there is no such program, or it may not be executed`);
}

function labelsOf(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (name === undefined || value === undefined)
        throw new UsageError(`--label must be like gpu=yes, not ${text}`);
      return [name, value];
    }),
  );
}

function resultOf(text: string): ResultKind {
  if (RESULTS.includes(text)) return text as ResultKind;
  throw new UsageError(`--result must be one of ${RESULTS.join(", ")}, not ${text}`);
}

function logLevelOf(text: string): LogLevel {
  const level = LOG_LEVELS.find((known) => known === text);
  if (level !== undefined) return level;
  throw new UsageError(`--log-level must be one of ${LOG_LEVELS.join(", ")}, not ${text}`);
}

import { Command } from "commander";
import type { CallOptions, RotaClient, TaskDryRun } from "../../client/index.ts";
import { inputOfTask } from "../../model/input/input-of-task.ts";
import type { SubmitInput, SubmittedTask } from "../../model/input/submit-input.ts";
import { TASK } from "../../model/input/task-schema.ts";
import { leftText } from "../../model/text/left-text.ts";
import { flagsOfFields, withInputOptions } from "../flags/input-flags.ts";
import { namingFlags } from "../flags/naming-flags.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { taskInput } from "../flags/submit-input.ts";
import { print, printJson, printNotice } from "../terminal/print.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { submitAndWait } from "./submit-and-wait.ts";

interface SubmitFlags extends ServerFlags {
  readonly file?: string;
  readonly again?: string;
  readonly wait?: string | true;
  readonly dryRun?: boolean;
}

const EXAMPLES = `
Examples:
  rota submit --message "hello" --wait
  rota submit --agent research --instruction "Summarise the news" --priority high --retries 2
  rota submit --payload '{"n": 1}' --run-at 10m
  rota submit --file task.json
It prints the id of the task, or with --wait its result.`;

/** `rota submit`: submits a task, and with `--wait` waits for its end. */
export function submitCommand(): Command {
  const command = new Command("submit").description(
    "Submit a task: one of --message, --instruction, --action and --payload, or a --file.",
  );
  withInputOptions(command, TASK.fields)
    .option("--file <file>", "a task as JSON, from a file or with - from stdin; flags override the file")
    .option("--again <taskId>", "copy this task, secrets included; other flags replace its fields")
    .option("--wait [seconds]", "wait until it has ended, at most this long, and print its result")
    .option("--dry-run", "only check it, and show what would be stored");
  return (
    withServerOptions(command)
      .addHelpText("after", EXAMPLES)
      // Refused below, with the option that the text lacks.
      .allowExcessArguments()
      .action(submit)
  );
}

async function submit(flags: SubmitFlags, { args }: Command): Promise<void> {
  const [word] = args;
  if (word !== undefined) {
    throw new UsageError(
      `"${word}" belongs to no option: write the text after one, and in quotes, as in --message "hello world"`,
    );
  }
  const input = await taskInput(flags, Date.now());
  if (Object.keys(input).length === 0 && flags.again === undefined) {
    throw new UsageError(
      "write what to do, for instance --message hello; there are --message, --instruction, --action and --payload",
    );
  }
  if (flags.dryRun && (flags.again !== undefined || flags.wait !== undefined)) {
    throw new UsageError("--dry-run takes no --again and no --wait: it stores nothing");
  }
  const rota = openClient(flags);
  try {
    if (flags.dryRun) return showDryRun(await rota.tasks.dryRun(input), flags);
    const submit =
      flags.again === undefined ? submitNew(rota, input) : await submitAgain(rota, flags.again, input);
    if (flags.wait === undefined) await submitOnly(submit, flags);
    else await submitAndWait(rota, submit, { wait: flags.wait, json: flags.json === true });
  } catch (error) {
    throw namingFlags(error, flagsOfFields(TASK.fields));
  }
}

function showDryRun(planned: TaskDryRun, { json }: ServerFlags): void {
  const { state, agentId, lane } = planned.task;
  if (json) printJson(planned);
  else {
    const line = `Nothing was stored. It would be ${state}, for agent ${agentId} in lane ${lane}.`;
    print([line, ...leftText(planned.left)].join("\n"));
  }
}

type Submit = (options: CallOptions) => Promise<SubmittedTask>;

function submitNew(rota: RotaClient, input: SubmitInput): Submit {
  return (options) => rota.tasks.submit(input, options);
}

/** The stored task, with the fields of the flags replaced. */
async function submitAgain(rota: RotaClient, taskId: string, changes: SubmitInput): Promise<Submit> {
  if (Object.keys(changes).length === 0)
    return (options) => rota.tasks.submitAgain(taskId, undefined, options);
  const input = { ...inputOfTask(await rota.tasks.get(taskId), Date.now()), ...changes };
  return (options) => rota.tasks.submitAgain(taskId, input as SubmitInput, options);
}

async function submitOnly(submit: Submit, { json }: ServerFlags): Promise<void> {
  const submitted = await submit({});
  if (json) return printJson(submitted);
  // Only the id, so that a script can keep it: TASK=$(rota submit …).
  print(submitted.taskId);
  for (const warning of submitted.warnings ?? []) printNotice(`warning: ${warning}`);
  const position = submitted.position === 0 ? "" : ` at position ${submitted.position}`;
  if (process.stdout.isTTY)
    printNotice(`It is ${submitted.state}${position}; see it with "rota task ${submitted.taskId}".`);
}

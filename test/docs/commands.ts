import { execFile, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { eventually } from "../end-to-end/server-process.ts";

/** The server that the pages speak of. */
const SHOWN_URL = "http://127.0.0.1:7682";

/** What a command leaves for those after it: the id of a task, and a key. */
export interface Kept {
  readonly TASK: string;
  readonly ROTA_KEY: string;
}

/** The output of a command, and the files that it leaves. */
export interface Ran {
  readonly output: string;
  readonly kept: Kept;
  readonly stderr: string;
}

/** Runs the commands of a block in a shell, as if they were pasted. */
export async function runCommands(text: string, { url, kept }: { url: string; kept: Kept }): Promise<Ran> {
  const script = `${text.replaceAll(SHOWN_URL, url)}\nprintf '\\n%s %s' "$TASK" "$ROTA_KEY"`;
  const running = promisify(execFile)("bash", ["--norc", "-euc", script], {
    env: { ...process.env, ...kept },
  });
  running.child.stdin?.end();
  // One that fails has said why.
  const { stdout, stderr } = await running.catch((error: { stdout: string; stderr: string }) => error);
  const end = stdout.lastIndexOf("\n");
  const [task = "", key = ""] = stdout.slice(end + 1).split(" ");
  return { output: stdout.slice(0, end), kept: { TASK: task, ROTA_KEY: key }, stderr };
}

/** Runs a command that may not end by itself, until it has printed what `isEnough`. */
export async function followCommand(
  text: string,
  { url, isEnough }: { url: string; isEnough: (output: string) => boolean },
): Promise<void> {
  const args = ["--norc", "-euc", `exec ${text.replaceAll(SHOWN_URL, url)}`];
  await follow("bash", args, { isEnough });
}

/** The same for a program for browsers; `prompt` is what makes it print something. */
export async function followProgram(
  text: string,
  {
    url,
    isEnough,
    prompt,
  }: { url: string; isEnough: (output: string) => boolean; prompt: () => Promise<unknown> },
): Promise<void> {
  const args = ["--experimental-eventsource", "--no-warnings", "-e", text.replaceAll(SHOWN_URL, url)];
  await follow(process.execPath, args, { isEnough, prompt });
}

async function follow(
  command: string,
  args: readonly string[],
  { isEnough, prompt }: { isEnough: (output: string) => boolean; prompt?: () => Promise<unknown> },
): Promise<void> {
  const options: SpawnOptions = { stdio: ["ignore", "pipe", "pipe"] };
  const child = spawn(command, args, options);
  // Some end by themselves once they have printed it.
  const closed = once(child, "close");
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk) => {
      output += chunk;
    });
  }
  try {
    await eventually(
      async () => {
        await prompt?.();
        return isEnough(output);
      },
      `${args.at(-1)} to print what is shown`,
    ).catch((error) => {
      throw new Error(`${error.message}; it printed ${output}`);
    });
  } finally {
    child.kill("SIGKILL");
    await closed;
  }
}

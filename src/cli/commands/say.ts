import { Command } from "commander";
import type { CallOptions, RotaClient, SessionMessage } from "../../client/index.ts";
import { MESSAGE } from "../../model/input/session-input.ts";
import { flagsOfFields, inputOfFlags, withInputOptions } from "../flags/input-flags.ts";
import { namingFlags } from "../flags/naming-flags.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print, printJson, printNotice } from "../terminal/print.ts";
import { printStopped } from "../views/stopped-lines.ts";
import { submitAndWait } from "./submit-and-wait.ts";

interface SayFlags extends ServerFlags {
  readonly wait?: string | true;
}

/** Flags whose names differ from their fields. */
const FIELD_FLAGS = { ...flagsOfFields(MESSAGE.fields), key: "<key>", message: "<text>" };

/** `rota say KEY TEXT`: sends a message to a session, and with `--wait` waits for the reply. */
export function sayCommand(): Command {
  const command = new Command("say")
    .description("Send a message to a session, a conversation with any key as its name.")
    .argument("<key>", "the session: any text of up to 256 characters, like user:42")
    .argument("<text...>", "the message; /stop and /stopall end running tasks");
  withInputOptions(command, MESSAGE.fields).option(
    "--wait [seconds]",
    "wait for the answer, at most this long",
  );
  return withServerOptions(command).action(say);
}

async function say(key: string, words: readonly string[], flags: SayFlags): Promise<void> {
  const { wait } = flags;
  const input: SessionMessage = {
    message: words.join(" "),
    ...inputOfFlags(MESSAGE.fields, flags, Date.now()),
  };
  const rota = openClient(flags);
  const send = (options: CallOptions = {}) => sendMessage(rota, { key, input, options, flags });
  try {
    if (wait === undefined) await send();
    else await submitAndWait(rota, send, { wait, json: flags.json === true });
  } catch (error) {
    throw namingFlags(error, FIELD_FLAGS);
  }
}

/** The task of the message. Null for a stop word: then it has printed what was stopped. */
async function sendMessage(
  rota: RotaClient,
  params: {
    readonly key: string;
    readonly input: SessionMessage;
    readonly options: CallOptions;
    readonly flags: SayFlags;
  },
): Promise<{ readonly taskId: string } | null> {
  const { key, input, options, flags } = params;
  const sent = await rota.sessions.send(key, input, options);
  if (sent.taskId === undefined) {
    printStopped(sent, flags);
    return null;
  }
  if (flags.wait !== undefined) return sent;
  if (flags.json) printJson(sent);
  // Only the id, so that a script can keep it.
  else print(sent.taskId);
  if (!flags.json) for (const warning of sent.warnings ?? []) printNotice(`warning: ${warning}`);
  if (!flags.json && process.stdout.isTTY) {
    printNotice(`It is ${sent.merged ? "merged into the previous message, and " : ""}${sent.state}.`);
  }
  return sent;
}

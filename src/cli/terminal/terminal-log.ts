import { styleText } from "node:util";
import type { Log } from "../../model/log.ts";
import { clockTime } from "../views/times.ts";
import { oneLine, safeLines } from "./display-text.ts";
import { isExpectedError } from "./expected-error.ts";

type Fields = Readonly<Record<string, unknown>>;
type Level = "debug" | "info" | "warn" | "error";

const STYLES = { debug: "gray", info: "green", warn: "yellow", error: "red" } as const;
/** Keeps a line readable. `rota task` shows the rest of a long error. */
const VALUE_LENGTH_MAX = 300;

/** A log that people read: `12:00:01 warn  an attempt failed  taskId=tsk_… error="no answer"`. */
export function terminalLog(stream: NodeJS.WriteStream, inherited: Fields = {}): Log {
  const at =
    (level: Level): Log["info"] =>
    (fields, message) =>
      void stream.write(line(level, { ...inherited, ...fields }, message, stream));
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => terminalLog(stream, { ...inherited, ...fields }),
  };
}

function line(level: Level, fields: Fields, message: string, stream: NodeJS.WriteStream): string {
  const style = (name: Parameters<typeof styleText>[0], text: string) => styleText(name, text, { stream });
  const shownFields = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${style("dim", `${oneLine(name)}=`)}${shownValue(value)}`);
  const head = `${style("dim", clockTime(new Date()))} ${style(STYLES[level], level.padEnd(5))} ${safeLines(message)}`;
  return `${[head, ...shownFields].join("  ")}\n${stackOf(level, fields)}`;
}

function shownValue(value: unknown): string {
  const text = oneLine(value instanceof Error ? value.message : textOf(value));
  const cut = text.length > VALUE_LENGTH_MAX ? `${text.slice(0, VALUE_LENGTH_MAX)}…` : text;
  return typeof value === "object" && !(value instanceof Error)
    ? cut
    : /^[^\s"=]+$/.test(cut)
      ? cut
      : `"${cut}"`;
}

function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    // A value that contains itself. Only an executor of an embedding program could log one.
    return "[object]";
  }
}

/** The stack of an error, to find its cause. Warnings have none: they are about expected events. */
function stackOf(level: Level, { error }: Fields): string {
  if (level !== "error" || !(error instanceof Error) || isExpectedError(error)) return "";
  if (error.stack === undefined) return "";
  const frames = error.stack.split("\n").filter((frame) => /^\s+at /.test(frame));
  return frames.map((frame) => `${safeLines(frame)}\n`).join("");
}

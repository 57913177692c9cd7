import type { Log } from "../../src/model/log.ts";

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A log that keeps its lines. */
export class RecordingLog implements Log {
  readonly lines: LogLine[];
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(lines: LogLine[] = [], fields: Readonly<Record<string, unknown>> = {}) {
    this.lines = lines;
    this.#fields = fields;
  }

  debug = this.#at("debug");
  info = this.#at("info");
  warn = this.#at("warn");
  error = this.#at("error");

  child(fields: Readonly<Record<string, unknown>>): RecordingLog {
    return new RecordingLog(this.lines, { ...this.#fields, ...fields });
  }

  /** The messages of one level, or of warnings and errors. */
  messages(...levels: LogLine["level"][]): string[] {
    const wanted = levels.length === 0 ? ["warn", "error"] : levels;
    return this.lines.filter(({ level }) => wanted.includes(level)).map(({ message }) => message);
  }

  #at(level: LogLine["level"]) {
    return (fields: Readonly<Record<string, unknown>>, message: string): void => {
      this.lines.push({ level, message, fields: { ...this.#fields, ...fields } });
    };
  }
}

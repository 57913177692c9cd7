/** One event of a stream, as the HTML standard describes them. */
export interface SseMessage {
  /** `message` when the stream names none. */
  readonly type: string;
  /** Undefined when there is none: such an event is there for its id alone, and others than us never see it. */
  readonly data: string | undefined;
  /** The last id the stream gave, with this event or before it; empty when it gave none. */
  readonly id: string;
}

/** The largest result takes a mebibyte, and up to six times that when every character of it is escaped. */
const MESSAGE_LENGTH_MAX = 16 * 1_048_576;

/**
 * Reads server-sent events from bytes as they arrive, however they are cut: in the middle of a line, of a line's end or
 * of a character.
 *
 * @example
 * for (const { type, data } of parser.push(chunk)) console.log(type, data);
 */
export class SseParser {
  // It takes the byte order mark off the beginning by itself, and keeps the half of a character for the next chunk.
  readonly #decoder = new TextDecoder("utf-8");
  readonly #lengthMax: number;
  /** What has arrived of a line that has not ended. */
  #line = "";
  /** A carriage return ended the last chunk: a line feed that comes next belongs to it. */
  #endedByReturn = false;
  #type = "";
  #data: string[] = [];
  #length = 0;
  #id = "";
  #hasId = false;
  #retryMs: number | undefined;

  constructor({ lengthMax = MESSAGE_LENGTH_MAX }: { readonly lengthMax?: number } = {}) {
    this.#lengthMax = lengthMax;
  }

  /** How long the stream asks to wait before connecting again. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  /** The events that this chunk completes. Throws when one is too long to be kept. */
  push(chunk: Uint8Array): SseMessage[] {
    let text = this.#decoder.decode(chunk, { stream: true });
    if (text === "") return [];
    if (this.#endedByReturn && text.startsWith("\n")) text = text.slice(1);
    this.#endedByReturn = text.endsWith("\r");

    const messages: SseMessage[] = [];
    let from = 0;
    for (const { 0: lineEnd, index } of text.matchAll(/\r\n|\n|\r/g)) {
      const message = this.#endLine(this.#line + text.slice(from, index));
      if (message !== undefined) messages.push(message);
      this.#line = "";
      from = index + lineEnd.length;
    }
    this.#line += text.slice(from);
    this.#checkLength(this.#line);
    return messages;
  }

  #endLine(line: string): SseMessage | undefined {
    this.#checkLength(line);
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    // A line that begins with a colon is a comment.
    if (colon === 0) return undefined;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    this.#setField(name, value);
    return undefined;
  }

  #setField(name: string, value: string): void {
    switch (name) {
      case "event":
        this.#type = value;
        return;
      case "data":
        this.#data.push(value);
        this.#length += value.length + 1;
        return;
      case "id":
        if (value.includes("\0")) return;
        this.#id = value;
        this.#hasId = true;
        return;
      case "retry":
        if (/^\d+$/.test(value)) this.#retryMs = Number(value);
        return;
    }
  }

  /** An empty line ends an event. One that says nothing is passed over. */
  #dispatch(): SseMessage | undefined {
    const data = this.#data.length > 0 ? this.#data.join("\n") : undefined;
    const message = { type: this.#type || "message", data, id: this.#id };
    const saysSomething = data !== undefined || this.#hasId;
    this.#type = "";
    this.#data = [];
    this.#length = 0;
    this.#hasId = false;
    return saysSomething ? message : undefined;
  }

  #checkLength(line: string): void {
    if (this.#length + line.length <= this.#lengthMax) return;
    throw new RangeError(`the stream has an event of more than ${this.#lengthMax} characters`);
  }
}

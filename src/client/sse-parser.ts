/** One event of a stream, as the HTML standard describes them. */
export interface SseMessage {
  /** `message` when the stream names none. */
  readonly type: string;
  /** Undefined if the event has none: it only carries its id. Browsers do not dispatch such events. */
  readonly data: string | undefined;
  /** The last id of the stream, with this event or before it. Empty if there was none. */
  readonly id: string;
}

/** The largest result is one mebibyte, and up to six times that if every character is escaped. */
const MESSAGE_LENGTH_MAX = 16 * 1_048_576;

/**
 * Parses server-sent events from bytes as they arrive, even if a chunk ends within a line, a line break or a character.
 *
 * @example
 * for (const { type, data } of parser.push(chunk)) console.log(type, data);
 */
export class SseParser {
  // It removes the byte order mark, and keeps half a character for the next chunk.
  readonly #decoder = new TextDecoder("utf-8");
  readonly #lengthMax: number;
  /** The part of an unfinished line that has arrived. */
  #line = "";
  /** The last chunk ended with a carriage return. A line feed that comes next belongs to it. */
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

  /** How long the stream asks the client to wait before it connects again. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  /** The events that this chunk completes. Throws if one is too long. */
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

  /** An empty line ends an event. An event without data and id is ignored. */
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

import { createParser } from "eventsource-parser";

/** One event of a response. Agents use only its data. */
export interface SseEvent {
  readonly data: string;
  /** Whether the event was longer than `eventLengthMax`. */
  readonly truncated: boolean;
}

export interface SseReaderLimits {
  /** Reading a longer response fails. */
  readonly bytesMax: number;
  /** How many characters of one event are kept, including its field names; the rest is dropped. */
  readonly eventLengthMax: number;
}

/** A line break, or the text between two of them. */
const PARTS = /\r\n|\r|\n|[^\r\n]+/g;

/**
 * Reads a response of server-sent events while it arrives, and keeps no more than one event of it. An event at the end of the
 * response counts even without the empty line after it, which many servers leave out.
 *
 * @example
 * const reader = new SseReader(answer.body, { bytesMax: 64 * 1_048_576, eventLengthMax: 1_048_576 });
 * for await (const { data } of reader) console.log(data);
 */
export class SseReader implements AsyncIterable<SseEvent> {
  readonly #body: AsyncIterable<Uint8Array>;
  readonly #limits: SseReaderLimits;
  readonly #parser = createParser({ onEvent: ({ data }) => this.#take(data) });
  readonly #decoder = new TextDecoder();
  #bytes = 0;
  /** The text that has arrived before the first event, up to about the length of one; null: there was an event. */
  #text: string | null = "";
  #events: SseEvent[] = [];
  /** How many more characters of the current event may be kept. */
  #room: number;
  #truncated = false;
  /** Whether the current line has any text, and whether any of it was kept. */
  #line: "empty" | "kept" | "left out" = "empty";
  /** The last part was a carriage return: a line feed right after it belongs to the same line break. */
  #afterReturn = false;

  constructor(body: AsyncIterable<Uint8Array>, limits: SseReaderLimits) {
    this.#body = body;
    this.#limits = limits;
    this.#room = limits.eventLengthMax;
  }

  /** The text of the response if it had no events; null: it had some. */
  get otherwise(): { readonly text: string; readonly truncated: boolean } | null {
    const max = this.#limits.eventLengthMax;
    return this.#text === null
      ? null
      : { text: this.#text.slice(0, max), truncated: this.#text.length > max };
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SseEvent> {
    for await (const chunk of this.#body) {
      this.#count(chunk);
      yield* this.#read(this.#decoder.decode(chunk, { stream: true }));
    }
    yield* this.#read(this.#decoder.decode());
    yield* this.#parse("\n\n");
  }

  #count({ byteLength }: Uint8Array): void {
    this.#bytes += byteLength;
    const { bytesMax } = this.#limits;
    if (this.#bytes > bytesMax) throw new Error(`the answer is longer than ${bytesMax} bytes`);
  }

  #read(text: string): readonly SseEvent[] {
    if (this.#text !== null && this.#text.length <= this.#limits.eventLengthMax) this.#text += text;
    return this.#parse(text);
  }

  #parse(text: string): readonly SseEvent[] {
    for (const [part] of text.matchAll(PARTS)) {
      if (part[0] === "\r" || part[0] === "\n") this.#endLine(part);
      else this.#addToLine(part);
    }
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #addToLine(part: string): void {
    this.#afterReturn = false;
    const kept = part.slice(0, this.#room);
    this.#room -= kept.length;
    if (kept.length < part.length) this.#truncated = true;
    if (kept !== "") this.#line = "kept";
    else if (this.#line === "empty") this.#line = "left out";
    this.#parser.feed(kept);
  }

  #endLine(end: string): void {
    const isRestOfEnd = this.#afterReturn && end === "\n";
    this.#afterReturn = end === "\r";
    if (isRestOfEnd) return;
    const line = this.#line;
    this.#line = "empty";
    // The text of this line was dropped: its line break would look like an empty line and end the event.
    if (line === "left out") return;
    this.#parser.feed("\n");
    if (line === "empty") this.#endEvent();
  }

  #take(data: string): void {
    this.#text = null;
    this.#events.push({ data, truncated: this.#truncated });
  }

  #endEvent(): void {
    this.#room = this.#limits.eventLengthMax;
    this.#truncated = false;
  }
}

import { createParser } from "eventsource-parser";

/** One event of an answer: its data, which is all that those who answer tasks say. */
export interface SseEvent {
  readonly data: string;
  /** Whether there was more of it than is kept. */
  readonly truncated: boolean;
}

export interface SseReaderLimits {
  /** How much of the answer is read at most: then it fails. */
  readonly bytesMax: number;
  /** How many characters of one event are kept, its field names included; the rest is left out. */
  readonly eventLengthMax: number;
}

/** A line's end, or what stands between two of them. */
const PARTS = /\r\n|\r|\n|[^\r\n]+/g;

/**
 * Reads an answer of server-sent events while it arrives, holding no more of it than one event. An event that the
 * answer ends in is one, too: many servers leave out the empty line behind their last.
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
  /** What has arrived as long as there was no event, up to the length of one. */
  #text: string | null = "";
  #events: SseEvent[] = [];
  /** How many characters of the event that is arriving may still be kept. */
  #room: number;
  #truncated = false;
  /** Whether the line that is arriving has anything in it, and whether any of that was kept. */
  #line: "empty" | "kept" | "left out" = "empty";
  /** A carriage return ended the last part: a line feed that comes next belongs to it. */
  #afterReturn = false;

  constructor(body: AsyncIterable<Uint8Array>, limits: SseReaderLimits) {
    this.#body = body;
    this.#limits = limits;
    this.#room = limits.eventLengthMax;
  }

  /** What the answer was if it was none of events; null when there were some. */
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
    // Without its text the end of a line would be an empty one, and so the end of the event.
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

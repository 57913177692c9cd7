import { onTestFinished } from "vitest";

export interface Frame {
  readonly id?: string;
  readonly event?: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it waits for.
  readonly data?: any;
  readonly retry?: string;
  readonly comment?: string;
}

export interface OpenStream {
  readonly status: number;
  readonly headers: Headers;
  /** The next frame; undefined when the stream has ended. */
  next(): Promise<Frame | undefined>;
  take(count: number): Promise<Frame[]>;
  close(): void;
}

/** Follows a stream of server-sent events, every frame of it, until it is closed or the test ends. `json` is posted. */
export async function openStream(
  url: string,
  headers: Record<string, string> = {},
  json?: unknown,
): Promise<OpenStream> {
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const posted =
    json === undefined
      ? { headers }
      : {
          method: "POST",
          headers: { "content-type": "application/json", ...headers },
          body: JSON.stringify(json),
        };
  const response = await fetch(url, { ...posted, signal: controller.signal });
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  async function next(): Promise<Frame | undefined> {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end >= 0) {
        const frame = text.slice(0, end);
        text = text.slice(end + 2);
        return parseFrame(frame);
      }
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += value;
    }
  }
  return {
    status: response.status,
    headers: response.headers,
    next,
    async take(count) {
      const frames: Frame[] = [];
      while (frames.length < count) {
        const frame = await next();
        if (frame === undefined) throw new Error(`the stream ended after ${JSON.stringify(frames)}`);
        frames.push(frame);
      }
      return frames;
    },
    close: () => controller.abort(),
  };
}

function parseFrame(text: string): Frame {
  const lines = text.split("\n").map((line) => {
    const at = line.indexOf(":");
    const name = line.slice(0, at) || "comment";
    const value = line.slice(at + 1).trimStart();
    return [name, name === "data" ? JSON.parse(value) : value];
  });
  return Object.fromEntries(lines);
}

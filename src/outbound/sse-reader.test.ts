import { expect, test } from "vitest";
import { type SseEvent, SseReader } from "./sse-reader.ts";

const LIMITS = { bytesMax: 10_000, eventLengthMax: 100 };

async function* bytes(chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

async function all(reader: SseReader): Promise<SseEvent[]> {
  const events: SseEvent[] = [];
  for await (const event of reader) events.push(event);
  return events;
}

async function read(...chunks: readonly (string | Uint8Array)[]): Promise<SseEvent[]> {
  return all(new SseReader(bytes(chunks), LIMITS));
}

async function dataOf(...chunks: readonly (string | Uint8Array)[]): Promise<string[]> {
  return (await read(...chunks)).map(({ data }) => data);
}

test.each<[string, string, string[]]>([
  ["events of one line", "data: a\n\ndata:b\n\n", ["a", "b"]],
  ["events of several lines", "data: a\ndata: b\n\n", ["a\nb"]],
  ["lines that end in carriage returns", "data: a\r\n\r\ndata: b\r\rdata: c\r\n\r\n", ["a", "b", "c"]],
  ["comments and other fields", ": ping\n\nevent: x\nid: 7\ndata: a\nretry: 5\nodd\n\n", ["a"]],
  ["an event without an empty line behind it", "data: a\n\ndata: b\n", ["a", "b"]],
  ["an event without even the end of its line", "data: a\n\ndata: b", ["a", "b"]],
  ["an empty event", "data\n\ndata:\n\n", ["", ""]],
  ["characters of several bytes", "data: é🙂\n\n", ["é🙂"]],
  ["a byte order mark", "\u{feff}data: a\n\n", ["a"]],
  ["nothing", "", []],
])("reads %s, however they are cut", async (_what, text, expected) => {
  expect(await dataOf(text)).toEqual(expected);
  for (const size of [1, 2, 3, 7]) {
    const whole = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(whole.length / size) }, (_, index) =>
      whole.subarray(index * size, (index + 1) * size),
    );
    expect(await dataOf(...chunks), `by ${size} bytes`).toEqual(expected);
  }
});

test("gives an event as soon as it is complete", async () => {
  const arrived: string[] = [];
  async function* body(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("data: a\n\ndata: b");
    expect(arrived).toEqual(["a"]);
    yield Buffer.from("\n\n");
    expect(arrived).toEqual(["a", "b"]);
  }
  for await (const { data } of new SseReader(body(), LIMITS)) arrived.push(data);
  expect(arrived).toEqual(["a", "b"]);
});

test("cuts an event that is too long, marks it, and reads on behind it", async () => {
  for (const lineEnd of ["\n", "\r\n", "\r"]) {
    const long = `data: ${"x".repeat(500)}${lineEnd}${lineEnd}`;
    const chunks = [`data: a${lineEnd}${lineEnd}`, long.slice(0, 50), long.slice(50), `data: b${lineEnd}`];
    expect(await read(...chunks)).toEqual([
      { data: "a", truncated: false },
      { data: "x".repeat(94), truncated: true },
      { data: "b", truncated: false },
    ]);
  }
});

test("cuts an event of many lines without taking the cut for its end", async () => {
  for (const lineEnd of ["\n", "\r\n", "\r"]) {
    const lines = `data: ${"x".repeat(44)}${lineEnd}`.repeat(50);
    const events = [
      { data: `${"x".repeat(44)}\n${"x".repeat(44)}`, truncated: true },
      { data: "b", truncated: false },
    ];
    const text = `${lines}${lineEnd}data: b${lineEnd}${lineEnd}`;
    expect(await read(text)).toEqual(events);
    expect(await read(...[...text])).toEqual(events);
  }
});

test("an event of exactly the length that is kept is whole", async () => {
  expect(await read(`data: ${"x".repeat(94)}\n\n`)).toEqual([{ data: "x".repeat(94), truncated: false }]);
});

test("fails when there is more than is read", async () => {
  const many = "data: a\n\n".repeat(2_000);
  await expect(read(many)).rejects.toThrow("the answer is longer than 10000 bytes");
});

test("returns the text of a response without events", async () => {
  const otherwise = async (text: string) => {
    const reader = new SseReader(bytes([text.slice(0, 5), text.slice(5)]), LIMITS);
    await all(reader);
    return reader.otherwise;
  };
  expect(await otherwise('{"a":\n\n1}')).toEqual({ text: '{"a":\n\n1}', truncated: false });
  expect(await otherwise("")).toEqual({ text: "", truncated: false });
  expect(await otherwise("x".repeat(100))).toEqual({ text: "x".repeat(100), truncated: false });
  expect(await otherwise("x".repeat(101))).toEqual({ text: "x".repeat(100), truncated: true });
  expect(await otherwise("data: a")).toBeNull();
});

test("throws the error of a response after the events before it", async () => {
  async function* body(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("data: a\n\ndata: b");
    throw new Error("broke off");
  }
  const seen: string[] = [];
  const reading = async () => {
    for await (const { data } of new SseReader(body(), LIMITS)) seen.push(data);
  };
  await expect(reading()).rejects.toThrow("broke off");
  expect(seen).toEqual(["a"]);
});

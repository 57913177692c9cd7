import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type SseMessage, SseParser } from "./sse-parser.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function parse(text: string, parser = new SseParser()): SseMessage[] {
  return parser.push(bytes(text));
}

describe("SseParser", () => {
  test.each([
    ["line feeds", "event: a\ndata: 1\nid: 7\n\n"],
    ["carriage returns", "event: a\rdata: 1\rid: 7\r\r"],
    ["both", "event: a\r\ndata: 1\r\nid: 7\r\n\r\n"],
    ["a mixture", "event: a\rdata: 1\r\nid: 7\n\r"],
  ])("takes %s for the end of a line", (_what, text) => {
    expect(parse(text)).toEqual([{ type: "a", data: "1", id: "7" }]);
  });

  test("reads the same however the bytes are cut", () => {
    const text =
      "\ufeffretry: 10\r\n: größe\r\nevent: ü\r\ndata: 1\r\ndata:\r\ndata: 3 \u{1f916}\r\rid: 9\n\n";
    const whole = parse(text);
    expect(whole).toEqual([
      { type: "ü", data: "1\n\n3 \u{1f916}", id: "" },
      { type: "message", data: undefined, id: "9" },
    ]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 })), (lengths) => {
        const parser = new SseParser();
        const messages: SseMessage[] = [];
        let from = 0;
        for (const length of [...lengths, Number.MAX_SAFE_INTEGER]) {
          messages.push(...parser.push(bytes(text).subarray(from, from + length)));
          from += length;
        }
        expect(messages).toEqual(whole);
        expect(parser.retryMs).toBe(10);
      }),
    );
  });

  test("joins the lines of data, and takes one space off each", () => {
    expect(parse("data:  a\ndata:b\ndata\n\n")).toEqual([{ type: "message", data: " a\nb\n", id: "" }]);
  });

  test("passes over comments, unknown fields and events without data or id", () => {
    expect(parse(": heartbeat\n\nevent: empty\n\nfoo: bar\ndata: x\n\n")).toEqual([
      { type: "message", data: "x", id: "" },
    ]);
  });

  test("keeps the id for later events, until it is set anew or emptied", () => {
    const ids = parse("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n").map(({ id }) => id);
    expect(ids).toEqual(["1", "1", ""]);
  });

  test("returns an id without data, once that event is whole", () => {
    const parser = new SseParser();
    expect(parse("id: 12\n", parser)).toEqual([]);
    expect(parse("\n", parser)).toEqual([{ type: "message", data: undefined, id: "12" }]);
    expect(parse("\n: comment\n\n", parser)).toEqual([]);
  });

  test("ignores an id with a NUL in it and a wait that is no number", () => {
    const parser = new SseParser();
    expect(parse("id: 1\0\nretry: soon\ndata: a\n\n", parser)).toEqual([
      { type: "message", data: "a", id: "" },
    ]);
    expect(parser.retryMs).toBeUndefined();
  });

  test("does not return an event whose end has not arrived", () => {
    expect(parse("data: a\n\ndata: b\n")).toHaveLength(1);
  });

  test.each([
    ["one line", `data: ${"x".repeat(101)}`],
    ["many lines", "data: xxxxx\n".repeat(20)],
  ])("refuses to keep more than it may, in %s", (_what, text) => {
    const parser = new SseParser({ lengthMax: 100 });
    expect(() => parse(text, parser)).toThrow("more than 100 characters");
  });
});

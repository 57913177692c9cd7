import { expect, test } from "vitest";
import { prefersHtml, prefersStream, prefersText } from "./accepts.ts";

test.each([
  [undefined, false],
  ["", false],
  ["*/*", false],
  ["text/*", false],
  ["application/json", false],
  ["text/event-stream", true],
  ["Text/Event-Stream; charset=utf-8", true],
  ["text/event-stream, */*;q=0.1", true],
  ["*/*, text/event-stream", true],
  ["text/event-stream;q=0", false],
  ["application/json, text/event-stream;q=0.0", false],
  ["*/*, text/event-stream; q=0", false],
  ["application/json, text/event-stream", false],
  ["text/event-stream, application/json", true],
  ["text/event-stream;q=0.5, application/json", false],
  ["application/json;q=0.5, text/event-stream;q=0.9", true],
  ["application/json;q=0, text/event-stream;q=0.1", true],
  ["text/event-stream;q=high", true],
  ["text/event-stream-of-sorts", false],
])("`Accept: %s` asks for a stream: %j", (accept, isAsked) => {
  expect(prefersStream(accept)).toBe(isAsked);
});

test.each([
  [undefined, false],
  ["*/*", false],
  ["text/plain", true],
  ["text/plain; charset=utf-8, */*;q=0.1", true],
  ["application/json, text/plain", false],
  ["text/event-stream", false],
])("`Accept: %s` asks for a text: %j", (accept, isAsked) => {
  expect(prefersText(accept)).toBe(isAsked);
});

test.each([
  [undefined, false],
  ["*/*", false],
  ["application/json", false],
  ["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", true],
  ["application/json, text/html", false],
  ["text/html;q=0", false],
])("`Accept: %s` asks for a page: %j", (accept, isAsked) => {
  expect(prefersHtml(accept)).toBe(isAsked);
});

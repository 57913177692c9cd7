import { expect, test } from "vitest";
import { type Answerer, scriptedFetch, silence } from "../../../test/support/scripted-fetch.ts";
import { Terminal } from "../../../test/support/terminal.ts";
import { RotaClient } from "../../client/index.ts";
import { until } from "../../testing/signals.ts";
import { liveView } from "./live-view.ts";

/** A stream over which nothing comes but that it has begun. */
const quietStream: Answerer = ({ signal }) => {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(": hello\n\n"));
      signal.addEventListener("abort", () => controller.error(signal.reason), { once: true });
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
};

function watch(...answers: Answerer[]) {
  const { fetch, sent } = scriptedFetch(...answers);
  const terminal = new Terminal();
  const stop = new AbortController();
  const rota = new RotaClient({ url: "http://rota.test", fetch, retry: false });
  const left = liveView(rota, { title: "Rota", filter: {}, signal: stop.signal, ...terminal.streams });
  return { left, sent, terminal, stop };
}

test.each([
  ["q", "q"],
  ["Ctrl-C", "\x03"],
])("%s leaves at once, also while the server does not respond", async (_name, key) => {
  const { left, sent, terminal } = watch(quietStream, silence);
  await until(() => sent.length === 4, "the first look at the server");
  terminal.emit("data", Buffer.from(key));
  await left;
  expect(sent.map(({ signal }) => signal.aborted)).toEqual([true, true, true, true]);
  expect(terminal.isRaw).toBe(false);
});

test("a signal leaves at once, also while the server has not begun to respond", async () => {
  const { left, sent, terminal, stop } = watch(silence);
  await until(() => sent.length === 1, "the event stream");
  stop.abort();
  await left;
  expect(terminal.written).toBe("");
});

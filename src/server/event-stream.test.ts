import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { openStream } from "../../test/support/event-stream.ts";
import { RecordingLog } from "../../test/support/recording-log.ts";
import type { Events, EventsOptions } from "../interface/rota.ts";
import { RotaError } from "../model/errors.ts";
import type { RotaEvent } from "../model/event.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import { Gate, until } from "../testing/signals.ts";
import { EventStreams } from "./event-stream.ts";

type Tell = (options: EventsOptions) => AsyncGenerator<RotaEvent, undefined>;

/** A server on which every request opens a stream of what the test tells it. */
async function serveStreams(tell: Tell, { max }: { max?: number } = {}) {
  const clock = new ManualClock();
  const log = new RecordingLog();
  const events = (options: EventsOptions = {}): Events =>
    Object.assign(tell(options), { ready: Promise.resolve(), position: 0 });
  const streams = new EventStreams({ rota: { events }, clock, log, ...(max === undefined ? {} : { max }) });
  const server = createServer((_request, response) => {
    try {
      streams.open(response, {});
    } catch (error) {
      response.writeHead((error as RotaError).status).end((error as RotaError).message);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { clock, log, streams, port, url: `http://127.0.0.1:${port}` };
}

/** Events without end, one after the other, until the signal fires. */
async function* endless(bytes: number, signal: AbortSignal, onPull: () => void) {
  for (let seq = 1; !signal.aborted; seq++) {
    onPull();
    yield someEvent(seq, "x".repeat(bytes));
  }
  return undefined;
}

async function* silent({ signal }: EventsOptions) {
  await new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
  return undefined as never;
}

function someEvent(seq: number, result: unknown): RotaEvent {
  return {
    seq,
    type: "task.completed",
    tenantId: "default",
    taskId: "tsk_1",
    agentId: "a",
    lane: "tasks",
    state: "done",
    timestamp: "2026-01-01T00:00:00.000Z",
    result,
  };
}

test("whoever does not read is not written to: neither the next event nor a sign of life", async () => {
  let pulled = 0;
  const { clock, streams, port } = await serveStreams(({ signal }) =>
    endless(1_000_000, signal as AbortSignal, () => {
      pulled += 1;
    }),
  );
  const socket = connect(port, "127.0.0.1").pause();
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await until(() => pulled > 1, "the first events");
  let before = 0;
  await until(async () => {
    before = pulled;
    for (let turns = 0; turns < 20; turns++) await settle();
    return pulled === before;
  }, "the sending to rest");
  // What the kernel holds for a connection is a few megabytes; the rest has not even been asked for.
  expect(pulled).toBeLessThan(50);
  await clock.advance(60_000);
  expect(pulled).toBe(before);

  socket.resume();
  await until(() => pulled > before + 20, "the sending to go on");
  socket.destroy();
  await until(() => streams.size === 0, "the stream to end");
});

test("a reader that goes away gives back its place and its reader, also while it is being waited for", async () => {
  const signals: AbortSignal[] = [];
  const { streams, url } = await serveStreams(({ signal }) => {
    signals.push(signal as AbortSignal);
    return silent({ signal: signal as AbortSignal });
  });
  const [first, second] = [await openStream(url), await openStream(url)];
  expect(streams.size).toBe(2);
  first.close();
  await until(() => streams.size === 1, "the place to be free");
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  second.close();
  await until(() => streams.size === 0, "the place to be free");
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test("no more streams than there may be are open at once, and one that ends makes room", async () => {
  const { url, streams } = await serveStreams(silent, { max: 2 });
  const open = [await openStream(url), await openStream(url)];
  const refused = await fetch(url);
  expect([refused.status, await refused.text()]).toEqual([
    429,
    "2 event streams are open, and there can be no more: close some",
  ]);
  open[0]?.close();
  await until(() => streams.size === 1, "the place to be free");
  expect((await openStream(url)).status).toBe(200);
});

test("what is refused takes no place", async () => {
  const { url, streams } = await serveStreams(() => {
    throw new RotaError("invalid_field", "no such thing");
  });
  for (let tries = 0; tries < 3; tries++) expect((await fetch(url)).status).toBe(400);
  await until(() => streams.size === 0, "all places to be free");
});

test("a stream whose events cannot be read any further ends, and nothing else does", async () => {
  const broken = new Gate<never>();
  const { url, log, streams } = await serveStreams(async function* () {
    yield someEvent(1, null);
    await broken.opened.then(() => {
      throw new RotaError("storage_unavailable", "away");
    });
    return undefined;
  });
  const stream = await openStream(url);
  await stream.take(2);
  broken.open(undefined as never);
  expect(await stream.next()).toBeUndefined();
  expect(log.messages("debug")).toEqual(["an event stream ended early"]);
  await until(() => streams.size === 0, "the place to be free");
  expect((await openStream(url)).status).toBe(200);
});

test("closing ends all streams and lets no other begin", async () => {
  const { url, streams } = await serveStreams(silent);
  const stream = await openStream(url);
  await stream.next();
  streams.close();
  expect(await stream.next()).toBeUndefined();
  expect((await fetch(url)).status).toBe(503);
});

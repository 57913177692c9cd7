import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { openStream } from "../../test/support/event-stream.ts";
import { RecordingLog } from "../../test/support/recording-log.ts";
import type { Events, EventsOptions, LocalReading } from "../interface/rota.ts";
import { RotaError } from "../model/errors.ts";
import type { RotaEvent } from "../model/event.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import { Latch, until } from "../testing/signals.ts";
import { EventStreams } from "./event-stream.ts";
import { DEFAULT_REQUEST_LIMITS, RequestLimits } from "./middleware/request-limits.ts";
import { ReadTurns } from "./read-turns.ts";
import { Replays } from "./replays.ts";

type Publish = (options: EventsOptions & LocalReading) => AsyncGenerator<RotaEvent, undefined>;

/** A server on which every request opens a stream of what the test publishes. */
async function serveStreams(
  publish: Publish,
  { max, before }: { max?: number; before?: (response: ServerResponse) => Promise<void> } = {},
) {
  const clock = new ManualClock();
  const log = new RecordingLog();
  const events = (options: EventsOptions = {}): Events =>
    Object.assign(publish(options), { ready: Promise.resolve(), position: 0 });
  const rota = { events, notifications: () => expect.unreachable() };
  const keys = { watch: () => expect.unreachable() };
  const hasSecondTenant = () => false;
  const limits = new RequestLimits(DEFAULT_REQUEST_LIMITS, { clock, hasSecondTenant, onRefused: () => {} });
  const replays = new Replays(limits, {
    streams: new ReadTurns(hasSecondTenant),
    pages: new ReadTurns(hasSecondTenant),
  });
  const streams = new EventStreams({
    ...{ keys, clock, log, replays, hasSecondTenant },
    ...(max === undefined ? {} : { max }),
  });
  const server = createServer(async (_request, response) => {
    await before?.(response);
    try {
      streams.open(response, { rota, caller: { keyId: null, tenant: "default" }, key: null }, {});
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

/** A connection that never reads, once as much has been sent as fits into it. `sent`: how many events were asked for. */
async function neverReading(port: number, sent: () => number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").pause();
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await until(() => sent() > 1, "the first events");
  await until(async () => {
    const before = sent();
    for (let turns = 0; turns < 20; turns++) await settle();
    return sent() === before;
  }, "the sending to rest");
  return socket;
}

test("a client that disconnects before the stream begins leaves nothing open", async () => {
  const opened = new Latch();
  let stopped = false;
  const { clock, streams, port } = await serveStreams(
    ({ signal }) => {
      signal?.addEventListener("abort", () => {
        stopped = true;
      });
      return endless(100_000, signal as AbortSignal, () => {});
    },
    {
      // As looking up a key in a database does, which may take longer than a client waits.
      before: async (response) => {
        const closed = new Promise((resolve) => response.once("close", resolve));
        socket.destroy();
        await closed;
        setImmediate(() => opened.open());
      },
    },
  );
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await opened.opened;
  await until(() => streams.size === 0, "its place to be free");
  expect(stopped).toBe(true);
  await clock.advance(60_000);
  expect(streams.size).toBe(0);
});

test("a client that does not read is not written to: neither the next event nor a sign of life", async () => {
  let sent = 0;
  const { clock, streams, port } = await serveStreams(({ signal }) =>
    endless(1_000_000, signal as AbortSignal, () => {
      sent += 1;
    }),
  );
  const socket = await neverReading(port, () => sent);
  // What the kernel holds for a connection is a few megabytes; the rest has not even been asked for.
  expect(sent).toBeLessThan(50);
  const before = sent;
  await clock.advance(29_000);
  expect([sent, streams.size]).toEqual([before, 1]);

  socket.resume();
  await until(() => sent > before + 20, "the sending to go on");
  socket.destroy();
  await until(() => streams.size === 0, "the stream to end");
  expect(clock.pending).toBe(0);
});

test("a client that reads nothing for 30 seconds is dropped", async () => {
  let sent = 0;
  const signals: AbortSignal[] = [];
  const { clock, log, streams, port } = await serveStreams(({ signal }) => {
    signals.push(signal as AbortSignal);
    return endless(1_000_000, signal as AbortSignal, () => {
      sent += 1;
    });
  });
  const socket = await neverReading(port, () => sent);
  await clock.advance(30_000);
  await until(() => streams.size === 0, "the reader to be dropped");
  expect(signals[0]?.aborted).toBe(true);
  expect(log.messages("debug")).toEqual(["dropped a reader of an event stream that stopped reading"]);
  expect(clock.pending).toBe(0);
  const closed = new Latch();
  socket.on("close", () => closed.open()).resume();
  await closed.opened;
});

test("a client that reads nothing while a mebibyte piles up is dropped sooner", async () => {
  let sent = 0;
  let fallBehind = () => {};
  const { clock, streams, port } = await serveStreams(({ signal, onBehind }) => {
    fallBehind = onBehind ?? fallBehind;
    return endless(1_000_000, signal as AbortSignal, () => {
      sent += 1;
    });
  });
  await neverReading(port, () => sent);
  fallBehind();
  await clock.advance(4_999);
  expect(streams.size).toBe(1);
  await clock.advance(1);
  await until(() => streams.size === 0, "the reader to be dropped");
});

test("a client that reads on in time stays, however much has piled up, and however large one event is", async () => {
  let sent = 0;
  let fallBehind = () => {};
  const { clock, streams, port } = await serveStreams(({ signal, onBehind }) => {
    fallBehind = onBehind ?? fallBehind;
    return endless(50_000_000, signal as AbortSignal, () => {
      sent += 1;
    });
  });
  // The first event alone is more than a connection holds.
  const socket = connect(port, "127.0.0.1").pause();
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await until(() => sent > 0, "the first event");
  let read = 0;
  socket.on("readable", () => {});
  const take = async (bytes: number) => {
    const wanted = read + bytes;
    await until(() => {
      read += (socket.read() as Buffer | null)?.length ?? 0;
      return read >= wanted;
    }, "some of it to arrive");
  };
  for (let rounds = 0; rounds < 4; rounds++) {
    // More than the kernel of this machine keeps for the reader, so that the server gets to write again.
    await take(8_000_000);
    for (let turns = 0; turns < 20; turns++) await settle();
    fallBehind();
    await clock.advance(4_000);
  }
  expect([sent, streams.size]).toEqual([1, 1]);
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
  const broken = new Latch<never>();
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

test("a gap that opens while a stream is read is sent at once, with the place where it goes on", async () => {
  const gap = new Latch();
  const { url } = await serveStreams(async function* ({ onGap, signal }) {
    yield someEvent(7, 1);
    await gap.opened;
    onGap?.({ after: 7, oldest: 1 });
    await new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
    return undefined;
  });
  const stream = await openStream(url);
  const [, event] = await stream.take(2);
  expect(event?.id).toBe("7");
  gap.open();
  const [missing] = await stream.take(1);
  expect(missing).toEqual({ id: "0", event: "gap", data: { after: 7, oldest: 1 } });
});

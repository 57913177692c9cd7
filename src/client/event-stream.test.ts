import { describe, expect, test } from "vitest";
import { RecordingLog } from "../../test/support/recording-log.ts";
import {
  type Answerer,
  json,
  networkFailure,
  refusal,
  scriptedFetch,
  silence,
} from "../../test/support/scripted-fetch.ts";
import type { RotaEvent } from "../model/event.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { until } from "../testing/signals.ts";
import { RotaClient } from "./rota-client.ts";
import type { RotaClientOptions } from "./settings.ts";

/** A connection that the test writes to. */
class Stream {
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  readonly answer: Answerer = ({ signal }) => {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
        signal.addEventListener("abort", () => controller.error(signal.reason), { once: true });
        // Rota writes something as soon as it would send events.
        this.write(": hello\n\n");
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };

  write(text: string): this {
    this.#controller?.enqueue(new TextEncoder().encode(text));
    return this;
  }

  event(seq: number, fields: Record<string, unknown> = {}): this {
    return this.write(`id: ${seq}\nevent: task.created\ndata: ${JSON.stringify(fields)}\n\n`);
  }

  end(): void {
    this.#controller?.close();
  }

  breakOff(): void {
    this.#controller?.error(new TypeError("terminated"));
  }
}

function open(answers: Answerer[], options: Partial<RotaClientOptions> = {}) {
  const clock = new ManualClock();
  const { fetch, sent } = scriptedFetch(...answers);
  const rota = new RotaClient({ url: "http://rota.test", fetch, clock, random: () => 0.5, ...options });
  return { rota, sent, clock };
}

/** Collects the numbers of events in the background. */
function collect(events: AsyncIterable<RotaEvent>): { seqs: number[]; ended: Promise<void> } {
  const seqs: number[] = [];
  const read = async () => {
    for await (const { seq } of events) seqs.push(seq);
  };
  return { seqs, ended: read() };
}

describe("events over HTTP", () => {
  test("are those that the server sends, with their number", async () => {
    const stream = new Stream();
    const { rota, sent, clock } = open([stream.answer]);
    const events = rota.events({ agentId: "a b", batchId: "bat_1" });
    await clock.advance(0);
    stream.event(7, { type: "task.created", taskId: "tsk_1" });
    expect(await events.next()).toEqual({
      done: false,
      value: { seq: 7, type: "task.created", taskId: "tsk_1" },
    });
    expect(sent[0]?.path).toBe("/v1/tasks/events?agentId=a+b&batchId=bat_1");
    expect(sent[0]?.headers.has("last-event-id")).toBe(false);
    await events.return();
  });

  test.each([0, 41])("begin after %i when asked to", async (after) => {
    const { rota, sent, clock } = open([new Stream().answer]);
    const events = rota.events({ after });
    await clock.advance(0);
    expect(sent[0]?.headers.get("last-event-id")).toBe(String(after));
    await events.return();
  });

  test.each([-1, 1.5, "5"])("after %j are refused at once", (after) => {
    const { rota, sent } = open([json({})]);
    expect(() => rota.events({ after: after as number })).toThrow(
      expect.objectContaining({ code: "invalid_field", details: { field: "after" } }),
    );
    expect(sent).toEqual([]);
  });

  test.each([
    ["ends", (stream: Stream) => stream.end()],
    ["breaks", (stream: Stream) => stream.breakOff()],
    ["breaks in the middle of an event", (stream: Stream) => stream.write("id: 3\ndata: {").breakOff()],
  ])("go on where they were when the connection %s", async (_what, lose) => {
    const [first, second] = [new Stream(), new Stream()];
    const { rota, sent, clock } = open([first.answer, second.answer]);
    const events = rota.events();
    const { seqs, ended } = collect(events);
    await clock.advance(0);
    first.event(1).event(2);
    await until(() => seqs.length === 2);
    lose(first);
    await clock.advance(750);
    expect(sent[1]?.headers.get("last-event-id")).toBe("2");
    // A server that sends some of them once more changes nothing.
    second.event(1).event(2).event(3).event(4);
    await until(() => seqs.length === 4);
    expect(seqs).toEqual([1, 2, 3, 4]);
    await events.return();
    await ended;
    expect(clock.pending).toBe(0);
  });

  test.each([
    ["id: 40\n\n", "40"],
    [": hello\n\n", null],
  ])("go on from where they began when only %j had come before the connection was lost", async (text, id) => {
    const stream = new Stream();
    const { rota, sent, clock } = open([stream.answer, new Stream().answer]);
    const events = rota.events();
    void events.next();
    await clock.advance(0);
    stream.write(text).end();
    await clock.advance(1_000);
    expect(sent[1]?.headers.get("last-event-id")).toBe(id);
    await events.return();
  });

  test("are requested again when nothing at all has come for 45 seconds", async () => {
    const [first, second] = [new Stream(), new Stream()];
    const { rota, sent, clock } = open([first.answer, second.answer]);
    const events = rota.events();
    const { seqs } = collect(events);
    await clock.advance(40_000);
    first.write(": still here\n\n");
    await clock.advance(44_999);
    expect(sent).toHaveLength(1);
    await clock.advance(1);
    expect(sent[0]?.signal.aborted).toBe(true);
    await clock.advance(1_000);
    second.event(1);
    await until(() => seqs.length === 1);
    await events.return();
  });

  test("wait ever longer for a server that is away, and for as long as it takes", async () => {
    const [first, last] = [new Stream(), new Stream()];
    const away = Array(20).fill(networkFailure("ECONNREFUSED"));
    const log = new RecordingLog();
    const { rota, sent, clock } = open([first.answer, ...away, last.answer], { log });
    const events = rota.events();
    const { seqs } = collect(events);
    await clock.advance(0);
    first.event(1).end();
    await clock.advance(750 + 1_500 + 3_000 + 6_000 + 12_000 + 22_500);
    expect(sent).toHaveLength(7);
    await clock.advance(22_500 * 15);
    last.event(2);
    await until(() => seqs.length === 2);
    expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
    await events.return();
  });

  test("come back after the time that the server asks for", async () => {
    const stream = new Stream();
    const { rota, sent, clock } = open([stream.answer, new Stream().answer]);
    const events = rota.events();
    void events.next();
    await clock.advance(0);
    stream.write("retry: 100\n\n").end();
    await clock.advance(74);
    expect(sent).toHaveLength(1);
    await clock.advance(1);
    expect(sent).toHaveLength(2);
    await events.return();
  });

  test("report a gap, and then go on with smaller numbers if there are no others", async () => {
    const [first, second] = [new Stream(), new Stream()];
    const { rota, clock } = open([first.answer, second.answer]);
    const gaps: unknown[] = [];
    const events = rota.events({ after: 90, onGap: (gap) => gaps.push(gap) });
    const { seqs } = collect(events);
    await clock.advance(0);
    first.event(91).end();
    await clock.advance(1_000);
    second.write('event: gap\ndata: {"after":91,"oldest":1}\n\n').event(1).event(2);
    await until(() => seqs.length === 3);
    expect([gaps, seqs]).toEqual([[{ after: 91, oldest: 1 }], [91, 1, 2]]);
    await events.return();
  });

  test("go on from where a gap in the middle says, when the database was restored", async () => {
    const [first, second] = [new Stream(), new Stream()];
    const { rota, sent, clock } = open([first.answer, second.answer]);
    const gaps: unknown[] = [];
    const events = rota.events({ after: 90, onGap: (gap) => gaps.push(gap) });
    const { seqs } = collect(events);
    await clock.advance(0);
    first.event(91).write('id: 40\nevent: gap\ndata: {"after":91,"oldest":1}\n\n').event(41);
    await until(() => seqs.length === 2);
    expect([gaps, seqs, events.position]).toEqual([[{ after: 91, oldest: 1 }], [91, 41], 41]);
    first.write('id: 30\nevent: gap\ndata: {"after":41,"oldest":1}\n\n').end();
    await clock.advance(1_000);
    expect(new Headers(sent[1]?.headers).get("last-event-id")).toBe("30");
    await events.return();
  });

  test("say when they have begun, and from where to go on", async () => {
    const stream = new Stream();
    const { rota } = open([stream.answer]);
    const events = rota.events({ after: 3 });
    let isReady = false;
    void events.ready.then(() => {
      isReady = true;
    });
    await until(() => isReady);
    stream.write("id: 5\n\n").event(6).write("id: 9\n\n");
    expect((await events.next()).value?.seq).toBe(6);
    expect(events.position).toBe(6);
    void events.next();
    await until(() => events.position === 9);
    await events.return();
  });

  test("of a server that was restarted with an empty log are not skipped as already seen", async () => {
    const [first, second] = [new Stream(), new Stream()];
    const { rota, sent, clock } = open([first.answer, second.answer]);
    const events = rota.events({ after: 0 });
    const { seqs } = collect(events);
    await clock.advance(0);
    first.event(1).event(2).end();
    await clock.advance(750);
    expect(sent).toHaveLength(2);
    second.write("id: 0\n\n").event(1);
    await until(() => seqs.length === 3);
    expect(seqs).toEqual([1, 2, 1]);
    await events.return();
  });

  test("throw when a server accepts them and says nothing", async () => {
    const mute: Answerer = ({ signal }) =>
      new Response(
        new ReadableStream({
          start(controller) {
            signal.addEventListener("abort", () => controller.error(signal.reason), { once: true });
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      );
    const { rota, clock } = open([mute], { timeoutMs: 5_000, retry: false });
    const failed = expect(rota.events().ready).rejects.toThrow("did not respond within 5000 ms");
    await clock.advance(5_000);
    await failed;
  });

  test("end with their signal, also while one is waited for", async () => {
    const { rota, sent, clock } = open([new Stream().answer]);
    const controller = new AbortController();
    const events = rota.events({ signal: controller.signal });
    const next = events.next();
    await clock.advance(0);
    controller.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(await events.next()).toEqual({ done: true, value: undefined });
    expect([sent[0]?.signal.aborted, clock.pending]).toEqual([true, 0]);
  });

  test("end at once when their signal fires with more at hand", async () => {
    const stream = new Stream();
    const { rota, clock } = open([stream.answer]);
    const controller = new AbortController();
    const events = rota.events({ signal: controller.signal });
    await clock.advance(0);
    stream.write("id: 1\ndata: {}\n\nid: 2\ndata: {}\n\nid: 3\ndata: {}\n\n");
    expect((await events.next()).value?.seq).toBe(1);
    controller.abort();
    expect((await events.next()).done).toBe(true);
  });

  test("end when the loop over them is left, or before it has begun", async () => {
    for (const answer of [new Stream().answer, silence, networkFailure("ECONNREFUSED")]) {
      const { rota, sent, clock } = open([answer]);
      const events = rota.events();
      const next = events.next();
      await clock.advance(0);
      expect(await events.return()).toEqual({ done: true, value: undefined });
      expect((await next).done).toBe(true);
      expect([sent[0]?.signal.aborted, clock.pending]).toEqual([true, 0]);

      const unread = rota.events();
      await unread.return();
      await clock.advance(0);
      expect([sent.at(-1)?.signal.aborted, clock.pending]).toEqual([true, 0]);
    }
  });

  test("throw when the first connection cannot be made", async () => {
    const { rota, sent, clock } = open([networkFailure("ECONNREFUSED")]);
    const failed = expect(rota.events().next()).rejects.toMatchObject({ name: "ConnectionError" });
    await clock.advance(60_000);
    await failed;
    expect(sent).toHaveLength(4);
  });

  test.each([
    ["the server refuses", refusal("unauthorized", 401), { code: "unauthorized" }],
    ["it is not Rota that answers", () => new Response("<html>"), { name: "ConnectionError" }],
  ])("throw when %s, also later", async (_what, answer, error) => {
    const first = open([answer]);
    await expect(first.rota.events().next()).rejects.toMatchObject(error);

    const stream = new Stream();
    const later = open([stream.answer, answer]);
    const failed = expect(later.rota.events().next()).rejects.toMatchObject(error);
    await later.clock.advance(0);
    stream.end();
    await later.clock.advance(1_000);
    await failed;
    expect(later.clock.pending).toBe(0);
  });

  test("throw when what comes is no event of Rota's", async () => {
    const stream = new Stream();
    const { rota, clock } = open([stream.answer]);
    const failed = expect(rota.events().next()).rejects.toThrow("does not respond as Rota does");
    await clock.advance(0);
    stream.write("id: 1\ndata: hello\n\n");
    await failed;
  });

  test("have begun before anything is written that they should report", async () => {
    const clock = new ManualClock();
    const stream = new Stream();
    const slow: Answerer = (request) =>
      new Promise((resolve) => clock.setTimer(500, () => resolve(stream.answer(request))));
    const { rota, sent } = open([slow, json({ taskId: "tsk_1" }, 202)], { clock });
    const events = rota.events();
    const submitted = rota.tasks.submit({ message: "hello" });
    await clock.advance(499);
    expect(sent).toHaveLength(1);
    await clock.advance(1);
    expect(await submitted).toEqual({ taskId: "tsk_1" });
    expect(clock.pending).toBe(0);
    await events.return();
  });

  test("that do not begin hold nothing up for long", async () => {
    const { rota, sent, clock } = open([silence, json({ taskId: "tsk_1" }, 202)]);
    const events = rota.events();
    const controller = new AbortController();
    const given = rota.tasks.submit({ message: "a" }, { signal: controller.signal }).catch((error) => error);
    const submitted = rota.tasks.submit({ message: "b" });
    await clock.advance(1_000);
    controller.abort("enough");
    expect(await given).toBe("enough");
    await clock.advance(4_000);
    expect(await submitted).toEqual({ taskId: "tsk_1" });
    expect(sent).toHaveLength(2);
    await events.return();
  });
});

describe("notifications over HTTP", () => {
  const opening = (id: number) => `retry: 1000\nid: ${id}\nevent: open\ndata: {"ok":true}\n\n`;
  const entry = (id: number) =>
    `id: ${id}\nevent: notification\ndata: {"kind":"run.started","task_id":17}\n\n`;

  test("are those that the server sends, with their number, and go on after a lost connection", async () => {
    const [first, second] = [new Stream(), new Stream()];
    const { rota, sent, clock } = open([first.answer, second.answer]);
    const notifications = rota.notifications({ after: 6 });
    await clock.advance(0);
    first.write(opening(6) + entry(7));
    expect(await notifications.next()).toEqual({
      done: false,
      value: { id: 7, kind: "run.started", task_id: 17 },
    });
    first.breakOff();
    const next = notifications.next();
    await clock.advance(1_000);
    second.write(opening(7) + entry(7) + entry(8));
    expect((await next).value?.id).toBe(8);
    expect(sent.map(({ path, headers }) => [path, headers.get("last-event-id")])).toEqual([
      ["/v1/notifications/stream", "6"],
      ["/v1/notifications/stream", "7"],
    ]);
    await notifications.return();
  });

  test("go on where the server said it was when it opened, if nothing has come since", async () => {
    const [first, second] = [new Stream(), new Stream()];
    const { rota, sent, clock } = open([first.answer, second.answer]);
    const notifications = rota.notifications();
    void notifications.next();
    await clock.advance(0);
    first.write(`${opening(41)}: heartbeat\n\n`);
    await until(() => notifications.position === 41);
    first.end();
    await clock.advance(1_000);
    expect(sent[1]?.headers.get("last-event-id")).toBe("41");
    await notifications.return();
  });

  test("are requested again when nothing at all has come for 90 seconds", async () => {
    const { rota, sent, clock } = open([new Stream().answer, new Stream().answer]);
    const notifications = rota.notifications();
    void notifications.next();
    await clock.advance(89_999);
    expect(sent).toHaveLength(1);
    await clock.advance(1_001);
    expect(sent).toHaveLength(2);
    await notifications.return();
  });
});

describe("a handler of events", () => {
  test("is called with each until it is taken away, whatever it throws", async () => {
    const stream = new Stream();
    const log = new RecordingLog();
    const { rota, sent, clock } = open([stream.answer], { log });
    const seqs: number[] = [];
    const undo = rota.onEvent((event) => {
      seqs.push(event.seq);
      if (event.seq === 1) throw new Error("a fault");
      if (event.seq === 2) return Promise.reject(new Error("another"));
      return undefined;
    });
    await clock.advance(0);
    stream.event(1).event(2).event(3);
    await until(() => seqs.length === 3);
    await until(() => log.lines.length === 2);
    undo();
    await until(() => sent[0]?.signal.aborted === true);
    expect([seqs, clock.pending]).toEqual([[1, 2, 3], 0]);
  });

  test("gets nothing more when the server refuses, which the log says", async () => {
    const log = new RecordingLog();
    const { rota } = open([refusal("forbidden", 403)], { log });
    rota.onEvent(() => {});
    await until(() => log.lines.length === 1);
    expect(log.lines[0]).toMatchObject({ level: "error", fields: { error: { code: "forbidden" } } });
  });
});

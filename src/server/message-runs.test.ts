import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, test, vi } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { OF_LIBRARY } from "../model/provenance.ts";
import { until } from "../testing/signals.ts";
import { EventStreams } from "./event-stream.ts";
import { MessageRuns } from "./message-runs.ts";
import { DEFAULT_REQUEST_LIMITS, RequestLimits } from "./middleware/request-limits.ts";
import { ReadTurns } from "./read-turns.ts";
import { Replays } from "./replays.ts";
import { TaskWaits } from "./task-waits.ts";

/** `max`: how many streams and waits there may be. */
async function openRuns({ max }: { max: number }) {
  const { rota, clock, log } = await openTestRota();
  const hasSecondTenant = () => false;
  const limits = new RequestLimits(DEFAULT_REQUEST_LIMITS, { clock, hasSecondTenant, onRefused: () => {} });
  const replays = new Replays(limits, {
    streams: new ReadTurns(hasSecondTenant),
    pages: new ReadTurns(hasSecondTenant),
  });
  const streams = new EventStreams({ keys: rota.keys, clock, log, replays, hasSecondTenant, max });
  const waits = new TaskWaits(rota.keys, { max, hasSecondTenant });
  const caller = { tenant: "default", role: "admin", agent: null, keyId: null, keyName: null } as const;
  const run = {
    callerContext: { caller, role: caller.role, rota, key: null, provenance: OF_LIBRARY, access: {} },
    sessionKey: "s",
    message: "hi",
    send: () => rota.sessions.send("s", { message: "hi" }),
    reading: {},
  };
  return { rota, log, run, runs: new MessageRuns({ streams, waits }) };
}

/** A response whose reader reads everything, until the test emits `close`. */
function openResponse(): ServerResponse {
  const response = Object.assign(new EventEmitter(), {
    writeHead: () => response,
    flushHeaders: () => {},
    write: () => true,
    end: () => {},
  });
  return response as unknown as ServerResponse;
}

test.each(["stream", "wait"] as const)("says nothing when there is no room to %s", async (method) => {
  const { rota, run, runs } = await openRuns({ max: 0 });
  const response = new EventEmitter() as ServerResponse;
  const refused = runs[method](response, { ...run, cancelOnDisconnect: false, timeoutSec: 1 });
  await expect(refused).rejects.toMatchObject({ code: "rate_limited" });
  expect((await rota.tasks.counts()).total).toBe(0);
});

test("a task of a disconnected reader that cannot be cancelled is logged, and the process goes on", async () => {
  const { rota, log, run, runs } = await openRuns({ max: 1 });
  vi.spyOn(rota.tasks, "get").mockRejectedValue(new TypeError("broken"));
  const response = openResponse();
  await runs.stream(response, { ...run, cancelOnDisconnect: true, timeoutSec: undefined });
  response.emit("close");
  await until(() => log.messages("error").length > 0, "the error in the log");
  expect(log.messages("error")).toEqual(["could not cancel the task of a reader that disconnected"]);
});

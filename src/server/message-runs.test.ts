import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { OF_LIBRARY } from "../model/provenance.ts";
import { EventStreams } from "./event-stream.ts";
import { MessageRuns } from "./message-runs.ts";
import { DEFAULT_REQUEST_LIMITS, RequestLimits } from "./middleware/request-limits.ts";
import { ReadTurns } from "./read-turns.ts";
import { Replays } from "./replays.ts";
import { TaskWaits } from "./task-waits.ts";

/** No slots. */
async function openFull() {
  const { rota, clock, log } = await openTestRota();
  const hasSecondTenant = () => false;
  const limits = new RequestLimits(DEFAULT_REQUEST_LIMITS, { clock, hasSecondTenant, onRefused: () => {} });
  const replays = new Replays(limits, new ReadTurns(hasSecondTenant));
  const streams = new EventStreams({ keys: rota.keys, clock, log, replays, hasSecondTenant, max: 0 });
  const waits = new TaskWaits(rota.keys, { max: 0, hasSecondTenant });
  return { rota, runs: new MessageRuns({ streams, waits }) };
}

test.each(["stream", "wait"] as const)("says nothing when there is no room to %s", async (method) => {
  const { rota, runs } = await openFull();
  const caller = { tenant: "default", role: "admin", agent: null, keyId: null, keyName: null } as const;
  const run = {
    callerContext: { caller, role: caller.role, rota, key: null, provenance: OF_LIBRARY, access: {} },
    sessionKey: "s",
    message: "hi",
    send: () => rota.sessions.send("s", { message: "hi" }),
    cancelOnDisconnect: false,
    reading: {},
    timeoutSec: 1,
  };
  const response = new EventEmitter() as ServerResponse;
  await expect(runs[method](response, run)).rejects.toMatchObject({ code: "rate_limited" });
  expect((await rota.tasks.counts()).total).toBe(0);
});

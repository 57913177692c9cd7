import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import { expect, onTestFinished, test } from "vitest";
import { newTask, ROOMY } from "../../test/support/engine.ts";
import { serve } from "../../test/support/http-server.ts";
import { RecordingLog } from "../../test/support/recording-log.ts";
import { asSharedStorage, away, type Meddler, meddle, openMemory } from "../../test/support/storages.ts";
import { Redactor } from "../model/redactor.ts";
import type { Lookup } from "../outbound/name-lookup.ts";
import { TargetGuard } from "../outbound/target-guard.ts";
import { StorageClock } from "../services/storage-clock.ts";
import type { DeliveryRecord, Storage } from "../storage/storage.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import { Latch, until } from "../testing/signals.ts";
import { Deliverer, type DeliveryResult } from "./deliverer.ts";
import { deliveryId } from "./delivery-id.ts";
import { signature } from "./signature.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

interface DelivererParams {
  readonly clock?: ManualClock;
  readonly storage?: Storage;
  readonly meddler?: Meddler;
  readonly allow?: string[];
  readonly lookup?: Lookup;
  readonly secret?: string;
  readonly start?: boolean;
}

/** A deliverer on a storage in memory, which ends with the test. */
async function makeDeliverer(params: DelivererParams = {}) {
  const {
    clock = new ManualClock(),
    allow = ["127.0.0.1"],
    lookup = toLoopback,
    secret,
    meddler = {},
  } = params;
  const storage = params.storage ?? (await openMemory(clock));
  await storage.lanes.configure({
    lanes: [
      { name: "tasks", total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 },
    ],
  });
  const guard = new TargetGuard({ allow, clock, lookup });
  const log = new RecordingLog();
  const results: DeliveryResult[] = [];
  const meddled = meddle(storage, meddler);
  const deliverer = new Deliverer({
    storage: meddled,
    storageClock: new StorageClock({ clock, storage: meddled }),
    clock,
    log,
    random: () => 0.5,
    guard: () => guard,
    sign: (_tenant, content) => (secret === undefined ? null : signature([keyOf(secret)], content)),
    redactor: () => new Redactor([]),
    version: "1.2.3",
    onResult: (result) => results.push(result),
  });
  if (params.start !== false) deliverer.start();
  onTestFinished(async () => {
    await Promise.race([deliverer.drain(0), clock.advance(60_000)]);
    await guard.close();
    await storage.close();
  });

  const list = async (tenant = "default") =>
    (await storage.deliveries.list({ tenant, limit: 1_000 })).deliveries;
  return {
    deliverer,
    clock,
    storage,
    log,
    results,
    list,
    /** Ends a task with a callback to this URL, and wakes the deliverer as the engine does. */
    end: async (url: string, times = 1, tenant = "default"): Promise<string[]> => {
      const tasks = Array.from({ length: times }, () => newTask({ callbackUrl: url, tenant }));
      await storage.tasks.insert({ tasks, limits: ROOMY });
      const ids = tasks.map(({ id }) => id);
      await storage.tasks.cancel({ tenant, ids, error: "enough" });
      deliverer.wake();
      return ids;
    },
    /** The only delivery, once it has these fields. */
    untilOnly: async (wanted: Partial<DeliveryRecord>): Promise<DeliveryRecord> => {
      const fits = (delivery: DeliveryRecord | undefined) =>
        Object.entries(wanted).every(([field, value]) => delivery?.[field as keyof DeliveryRecord] === value);
      let found: DeliveryRecord[] = [];
      await until(
        async () => {
          found = await list();
          return found.length === 1 && fits(found[0]);
        },
        `a delivery with ${JSON.stringify(wanted)}`,
      );
      return found[0] as DeliveryRecord;
    },
  };
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.replace("whsec_", ""), "base64");
}

/** Every name leads to this machine. */
const toLoopback: Lookup = async () => [{ address: "127.0.0.1", family: 4 }];

/** The same receiver, called by a name. */
function as(name: string, { url }: { url: string }): string {
  return url.replace("127.0.0.1", name);
}

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver that responds with each of these in turn, then always with the last. */
async function receiver(...answers: ((response: ServerResponse) => void)[]) {
  const received: Received[] = [];
  const open = new Set<ServerResponse>();
  let most = 0;
  const url = await serve((request, response, body) => {
    open.add(response);
    response.on("close", () => open.delete(response));
    most = Math.max(most, open.size);
    received.push({ headers: request.headers, body });
    const answer = answers[Math.min(received.length, answers.length) - 1] ?? status(204);
    answer(response);
  });
  return {
    url: `${url}/hook?token=secret`,
    received,
    ids: () => received.map(({ headers }) => headers["webhook-id"]),
    open,
    most: () => most,
  };
}

function status(code: number, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => void response.writeHead(code, headers).end();
}

function hang(): void {}

function hangInBody(response: ServerResponse): void {
  response.writeHead(200).write("so far so good");
}

function breakOff(response: ServerResponse): void {
  response.writeHead(200, { "content-length": "1000" }).write("so far so good", () => reset(response));
}

function badlyPacked(response: ServerResponse): void {
  response.writeHead(200, { "content-encoding": "gzip" }).end("this is not packed at all");
}

function reset(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}

// ---------------------------------------------------------------------------------------------------- requests

test("posts the task as it ended, with the headers of PinchTab and of Standard Webhooks", async () => {
  const { end, untilOnly, results } = await makeDeliverer();
  const { url, received } = await receiver();
  const [taskId] = await end(url);
  const delivery = await untilOnly({ status: "delivered" });
  expect(delivery).toMatchObject({ tries: 1, dueAt: null, responseStatus: 204, error: null });
  expect(received).toHaveLength(1);
  expect(received[0]?.headers).toMatchObject({
    "content-type": "application/json",
    "user-agent": "rota/1.2.3",
    "x-pinchtab-event": "task.completed",
    "x-pinchtab-task-id": taskId,
    "webhook-id": deliveryId(delivery),
    "webhook-timestamp": String(Date.UTC(2026, 0, 1) / 1_000),
  });
  expect(received[0]?.headers).not.toHaveProperty("webhook-signature");
  expect(JSON.parse(received[0]?.body ?? "")).toMatchObject({
    taskId,
    state: "cancelled",
    error: "enough",
    callbackUrl: url,
  });
  expect(results).toEqual([{ outcome: "delivered", ms: 0 }]);
});

test("signs with the secret so that the library of Standard Webhooks verifies it", async () => {
  const { end, untilOnly } = await makeDeliverer({ secret: SECRET, clock: new ManualClock(Date.now()) });
  const { url, received } = await receiver();
  const [taskId] = await end(url);
  await untilOnly({ status: "delivered" });
  const { headers, body } = received[0] as Received;
  expect(new Webhook(SECRET).verify(body, headers as Record<string, string>)).toMatchObject({ taskId });
});

test("reports the end that was, although the task was retried meanwhile", async () => {
  const { end, list, storage, clock } = await makeDeliverer();
  const { url, received } = await receiver(status(500), status(204));
  const [id = ""] = await end(url);
  await until(async () => (await list())[0]?.error === "HTTP 500", "the first try to fail");
  await storage.tasks.retry({ tenant: "default", id });
  await clock.advance(1_000);
  await until(async () => (await list())[0]?.status === "delivered", "the second try");
  const [first, second] = received.map(({ body }) => JSON.parse(body));
  expect(second).toMatchObject({ taskId: id, state: "cancelled", error: "enough" });
  expect(second).toEqual(first);
});

// --------------------------------------------------------------------------------------------------- what goes wrong

test("tries again after a failure, under the same id", async () => {
  const { end, untilOnly, clock, results } = await makeDeliverer();
  const { url, ids } = await receiver(status(500), status(200));
  await end(url);
  const failed = await untilOnly({ error: "HTTP 500" });
  expect(failed).toMatchObject({
    status: "pending",
    tries: 1,
    dueAt: clock.now() + 1_000,
    responseStatus: 500,
  });
  await clock.advance(999);
  expect(ids()).toHaveLength(1);
  await clock.advance(1);
  await untilOnly({ status: "delivered", tries: 2, error: null });
  expect(ids()).toEqual([deliveryId(failed), deliveryId(failed)]);
  expect(results.map(({ outcome }) => outcome)).toEqual(["retried", "delivered"]);
});

test("gives up after the fourth try, and the log says so without the URL", async () => {
  const { end, untilOnly, clock, log, results } = await makeDeliverer({ secret: SECRET });
  const { url, received } = await receiver(status(503));
  const [taskId] = await end(url);
  for (const [tries, waitMs] of [
    [1, 1_000],
    [2, 5_000],
    [3, 25_000],
  ] as const) {
    await untilOnly({ tries, error: "HTTP 503", dueAt: clock.now() + waitMs });
    await clock.advance(waitMs);
  }
  const given = await untilOnly({ status: "failed", tries: 4, dueAt: null, error: "HTTP 503" });
  await clock.advance(600_000);
  expect(received).toHaveLength(4);
  expect(results.map(({ outcome }) => outcome)).toEqual(["retried", "retried", "retried", "failed"]);
  const [first, line, ...more] = log.lines.filter(({ level }) => level === "warn");
  expect(more).toEqual([]);
  // A user who waits for a callback sees the reason before the fourth try.
  expect(first).toMatchObject({
    message: "a callback failed; it is tried again",
    fields: { deliveryId: deliveryId(given), taskId, tries: 1, error: "HTTP 503" },
  });
  expect(line).toMatchObject({
    message: "a webhook delivery failed",
    fields: { deliveryId: deliveryId(given), taskId, tries: 4, error: "HTTP 503" },
  });
  expect(JSON.stringify(log.lines)).not.toMatch(/token|whsec|MfKQ/);
});

test("waits as long as a busy receiver asks for", async () => {
  const { end, untilOnly, clock } = await makeDeliverer();
  const { url } = await receiver(status(429, { "retry-after": "90" }), status(200));
  await end(url);
  await untilOnly({ error: "HTTP 429", dueAt: clock.now() + 90_000 });
  await clock.advance(90_000);
  await untilOnly({ status: "delivered" });
});

test("stops trying when the receiver says that it is gone for good", async () => {
  const { end, untilOnly } = await makeDeliverer();
  const { url } = await receiver(status(410));
  await end(url);
  await untilOnly({ status: "failed", tries: 1, responseStatus: 410 });
});

test("does not follow a redirect", async () => {
  const { end, untilOnly } = await makeDeliverer();
  const { url, received } = await receiver(status(307, { location: "/hook" }));
  await end(url);
  await untilOnly({ status: "pending", error: "HTTP 307: redirects are not followed" });
  expect(received).toHaveLength(1);
});

test("leaves a receiver that hangs after ten seconds, and tries again", async () => {
  const { end, untilOnly, clock, results } = await makeDeliverer();
  const { url, received, open } = await receiver(hang, status(200));
  await end(url);
  await until(() => received.length === 1, "the first try");
  await clock.advance(9_999);
  expect(open.size).toBe(1);
  await clock.advance(1);
  await untilOnly({ status: "pending", tries: 1, error: "no answer within 10 s", responseStatus: null });
  await until(() => open.size === 0, "the connection to be dropped");
  expect(results).toEqual([{ outcome: "retried", ms: 10_000 }]);
  await clock.advance(1_000);
  await untilOnly({ status: "delivered", tries: 2 });
});

test("gives up a receiver that sends its headers byte by byte, after ten seconds as well", async () => {
  const { end, untilOnly, clock, deliverer } = await makeDeliverer();
  const { url, received, open } = await receiver((response) => {
    response.socket?.write("HTTP/1.1 200 OK\r\nx-drip: a");
  });
  await end(url);
  await until(() => received.length === 1, "the first try");
  for (let second = 1; second < 10; second += 1) {
    for (const response of open) response.socket?.write("a");
    await clock.advance(1_000);
  }
  expect(deliverer.inFlight).toEqual({ proven: 0, unproven: 1 });
  await clock.advance(1_000);
  await untilOnly({ status: "pending", tries: 1, error: "no answer within 10 s", responseStatus: null });
  await until(() => open.size === 0, "the connection to be dropped");
});

test("takes a connection that breaks for a failure", async () => {
  const { end, untilOnly, clock } = await makeDeliverer();
  const { url, received } = await receiver(reset, status(200));
  await end(url);
  await until(() => received.length === 1, "the first try");
  const { error } = await untilOnly({ status: "pending", tries: 1, dueAt: clock.now() + 1_000 });
  expect(error).toMatch(/^no answer from http:\/\/127\.0\.0\.1:\d+: /);
  await clock.advance(1_000);
  await untilOnly({ status: "delivered", tries: 2 });
});

test("reads only the beginning of an endless response, and its status counts", async () => {
  const { end, untilOnly } = await makeDeliverer();
  const { url, open } = await receiver((response) => {
    const more = () => {
      while (response.write("x".repeat(65_536)));
      response.once("drain", more);
    };
    more();
  });
  await end(url);
  await untilOnly({ status: "delivered", responseStatus: 200 });
  await until(() => open.size === 0, "the connection to be dropped");
});

test.each([
  ["never ends", hangInBody],
  ["breaks off", breakOff],
  ["cannot be unpacked", badlyPacked],
])("the status of a response that %s counts like any other", async (_what, answer) => {
  const { end, untilOnly, clock, results } = await makeDeliverer();
  const { url, received, open } = await receiver(answer);
  await end(url);
  await untilOnly({ status: "delivered", tries: 1, responseStatus: 200, error: null });
  expect(results).toEqual([{ outcome: "delivered", ms: 0 }]);
  await clock.advance(1_000);
  await until(() => open.size === 0, "the connection to be dropped");
  expect(received).toHaveLength(1);
});

test("a status that means a retry counts, although its response never ends", async () => {
  const { end, untilOnly, clock } = await makeDeliverer();
  const { url } = await receiver((response) => {
    response.writeHead(429, { "retry-after": "90" }).write("wait");
  }, status(200));
  await end(url);
  await untilOnly({ status: "pending", error: "HTTP 429", dueAt: clock.now() + 90_000 });
});

test("responses that never end hold no slot, and few connections", async () => {
  const { end, list, clock } = await makeDeliverer();
  const { url, open } = await receiver(hangInBody);
  await end(url, 60);
  await until(async () => {
    // Less than the time for reading the rest of a response.
    if (clock.now() < Date.UTC(2026, 0, 1) + 900) await clock.advance(1);
    return (await list()).every(({ status: is }) => is === "delivered");
  }, "all to be delivered");
  await until(() => open.size <= 16, "the other connections to be dropped");
  await clock.advance(1_000);
  await until(() => open.size === 0, "the last ones to be dropped");
});

test("a short response is read to its end, so that the next callback needs no new connection", async () => {
  const { end, list } = await makeDeliverer();
  const sockets = new Set<unknown>();
  const { url } = await receiver((response) => {
    sockets.add(response.socket);
    response.writeHead(200).end("ok");
  });
  for (let count = 1; count <= 3; count++) {
    await end(url);
    await until(async () => (await list()).filter(({ status: is }) => is === "delivered").length === count);
    await settle();
  }
  expect(sockets.size).toBe(1);
});

test("does not call what must not be called, and does not try again", async () => {
  const { end, untilOnly } = await makeDeliverer({ allow: [] });
  const { url, received } = await receiver();
  await end(url);
  const { error } = await untilOnly({ status: "failed", tries: 1, responseStatus: null });
  expect(error).toMatch(/^the URL must not lead to 127\.0\.0\.1, a loopback address: .*`outbound\.allow`/);
  expect(error).not.toContain("token");
  expect(received).toEqual([]);
});

test("a name that cannot be resolved in time is a failure like any other", async () => {
  const asked = new Latch();
  const lookup: Lookup = () => {
    asked.open();
    return new Promise(() => {});
  };
  const { end, untilOnly, clock } = await makeDeliverer({ lookup });
  await end("http://slow.example/");
  await asked.opened;
  await clock.advance(10_000);
  await untilOnly({ status: "pending", tries: 1, error: "no answer within 10 s" });
});

// -------------------------------------------------------------------------------------------------------- fairness

test("a host that hangs holds up no other of its tenant, however much there is for it and at however many ports", async () => {
  const { end, list, clock } = await makeDeliverer();
  const ports = await Promise.all(Array.from({ length: 4 }, () => receiver(hang)));
  const good = await receiver();
  for (const port of ports) await end(as("hangs.test", port), 50);
  await end(as("good.test", good), 5);
  await until(async () => (await list()).filter(({ status: is }) => is === "delivered").length === 5);
  const sent = () => ports.reduce((sum, { received }) => sum + received.length, 0);
  await until(() => sent() === 1, "its share");
  await clock.advance(9_900);
  expect(sent()).toBe(1);
  const counts = (await list()).map(({ host, tries, status: is }) => [host, tries, is].join());
  expect(counts.filter((each) => each === "hangs.test,1,pending")).toHaveLength(1);
  expect(counts.filter((each) => each === "hangs.test,0,pending")).toHaveLength(199);
});

test("hosts that hang get a small part together, however many names they have", async () => {
  const { end, list, clock, deliverer } = await makeDeliverer();
  const hanging = await receiver(hang);
  const good = await receiver();
  await end(as("good.test", good));
  await until(async () => (await list())[0]?.status === "delivered", "the good one to be known");
  for (let name = 0; name < 60; name += 1) await end(as(`name-${name}.hangs.test`, hanging));
  await until(() => hanging.open.size === 4, "the share of those that are new");
  for (let count = 2; count <= 12; count += 1) {
    await end(as("good.test", good));
    await until(() => good.received.length === count, "the good one to arrive at once");
    await clock.advance(1_000);
  }
  expect(hanging.most()).toBe(4);
  expect(deliverer.inFlight).toEqual({ proven: 0, unproven: 4 });
});

test("a tenant's first delivery starts at once, whatever others do", async () => {
  const { end, list, clock } = await makeDeliverer();
  const slow = await receiver(status(200), status(200), status(200), status(200), hang);
  const hanging = await receiver(hang);
  const good = await receiver();
  for (const name of ["one", "two", "three", "four"]) await end(as(`${name}.slow.test`, slow), 1, "busy");
  await until(
    async () => (await list("busy")).every(({ status: is }) => is === "delivered"),
    "all to be known",
  );
  // They count as proven hosts, and hang from now on.
  for (const name of ["one", "two", "three", "four"]) await end(as(`${name}.slow.test`, slow), 20, "busy");
  await until(() => slow.open.size === 12, "most slots to be taken");
  for (let name = 0; name < 50; name += 1) await end(as(`${name}.hangs.test`, hanging), 1, "hostile");
  await until(() => hanging.open.size > 0, "the second tenant to have its share");
  await clock.advance(1);
  expect(slow.open.size + hanging.open.size).toBeLessThan(16);
  await end(as("good.test", good), 1, "third");
  await until(() => good.received.length === 1, "that of the third tenant");
});

test("a host is proven for one tenant alone", async () => {
  const { end, list } = await makeDeliverer();
  const shared = await receiver(status(200), status(500), status(500), status(500), status(200));
  const url = as("shared.test", shared);
  await end(url, 1, "first");
  await until(async () => (await list("first"))[0]?.status === "delivered");
  for (let count = 1; count <= 3; count += 1) {
    await end(url, 1, "second");
    await until(async () => (await list("second"))[0]?.tries === 1 && shared.open.size === 0);
  }
  await until(async () => (await list("second")).every(({ error }) => error === "HTTP 500"));
  expect((await list("first")).map(({ hostProven }) => hostProven)).toEqual([true]);
  expect((await list("second")).map(({ hostProven }) => hostProven)).toEqual([false, false, false]);
});

test("deliveries that cannot be sent yet cause no calls of the storage", async () => {
  const operations: string[] = [];
  const { end, results, clock } = await makeDeliverer({
    meddler: { before: ({ operation }) => void operations.push(operation) },
  });
  const hanging = await receiver(hang);
  await end(as("hangs.test", hanging), 500);
  await until(() => hanging.received.length === 1, "the first of them");
  operations.length = 0;
  for (let ms = 0; ms < 9_000; ms += 10) await clock.advance(10);
  expect(operations, "nothing changes, so that nothing is asked").toEqual([]);

  const failing = await receiver(status(500));
  await end(as("fails.test", failing), 200);
  await until(() => results.length === 200, "each to be tried once");
  const claims = operations.filter((operation) => operation === "deliveries.claim").length;
  expect(claims, "one for each that ends").toBeLessThanOrEqual(205);
  expect(operations).not.toContain("deliveries.putBack");
});

test("nothing of a disabled tenant is sent until it is enabled", async () => {
  const { end, list, storage, clock, deliverer } = await makeDeliverer();
  const limits = {
    maxQueued: null,
    maxInflight: null,
    maxSchedules: null,
    maxSessions: null,
    maxStreams: null,
    maxAgents: null,
    maxStoredBytes: null,
  };
  await storage.tenants.create({ id: "stopped", name: "stopped", limits });
  await storage.tenants.setDisabled({ id: "stopped", disabled: true });
  const { url, received } = await receiver();
  await end(url, 3, "stopped");
  await end(url);
  await until(() => received.length === 1, "that of the other tenant");
  await clock.advance(60_000);
  expect(received).toHaveLength(1);
  await storage.tenants.setDisabled({ id: "stopped", disabled: false });
  deliverer.wake();
  await until(
    async () => (await list("stopped")).every(({ status: is }) => is === "delivered"),
    "the others",
  );
});

test("the deliveries of a deleted tenant are not sent", async () => {
  const { end, storage, clock } = await makeDeliverer();
  const limits = {
    maxQueued: null,
    maxInflight: null,
    maxSchedules: null,
    maxSessions: null,
    maxStreams: null,
    maxAgents: null,
    maxStoredBytes: null,
  };
  await storage.tenants.create({ id: "gone", name: "gone", limits });
  const hanging = await receiver(hang);
  await end(hanging.url, 20, "gone");
  await until(() => hanging.received.length === 1, "the first of them");
  await storage.tenants.delete({ id: "gone", limit: 1_000 });
  await clock.advance(60_000);
  expect(hanging.received).toHaveLength(1);
});

test("never has more than sixteen on their way, nor more than four to one host", async () => {
  const { end, list, clock } = await makeDeliverer();
  const known = await receiver(...Array.from({ length: 18 }, () => status(200)), hang);
  const tenants = ["a", "b", "c"];
  const urls = Array.from({ length: 6 }, (_, index) => as(`host-${index}.test`, known));
  for (const tenant of tenants) for (const url of urls) await end(url, 1, tenant);
  await until(async () => {
    const all = await Promise.all(tenants.map(list));
    return all.flat().every(({ status: is }) => is === "delivered");
  }, "all hosts to be known");
  for (const tenant of tenants) for (const url of urls) await end(url, 6, tenant);
  await until(() => known.open.size >= 14, "most slots to be taken");
  for (let second = 0; second < 30; second += 1) {
    await clock.advance(1_000);
    expect(known.open.size).toBeLessThanOrEqual(16);
  }
  expect(known.most()).toBeLessThanOrEqual(16);
  const tried = (await Promise.all(tenants.map(list))).map((all) =>
    all.some(({ tries, status: is }) => is === "pending" && tries > 0),
  );
  expect(tried, "each gets its turn").toEqual([true, true, true]);
});

test("a receiver that there is much for gets it all, four at a time, each once", async () => {
  const { end, list, clock } = await makeDeliverer();
  const { url, ids, most } = await receiver();
  await end(url, 100);
  await until(async () => {
    await clock.advance(5);
    return ids().length >= 100;
  }, "all to arrive");
  await until(async () => (await list()).every(({ status: is, tries }) => is === "delivered" && tries === 1));
  expect(new Set(ids()).size).toBe(100);
  expect(ids()).toHaveLength(100);
  expect(most()).toBeLessThanOrEqual(4);
});

// --------------------------------------------------------------------------------------------- crashes and neighbours

test("what a process died over is sent by another after its hold, under the same id", async () => {
  const clock = new ManualClock();
  const storage = asSharedStorage(await openMemory(clock));
  const { url, ids } = await receiver();
  const settling = new Latch();
  const dying = await makeDeliverer({
    clock,
    storage,
    meddler: {
      before: ({ operation }) => {
        if (operation !== "deliveries.settle") return;
        settling.open();
        return new Promise(() => {});
      },
    },
  });
  await dying.end(url);
  await settling.opened;
  const other = await makeDeliverer({ clock, storage });
  await clock.advance(29_000);
  expect(ids()).toHaveLength(1);
  await clock.advance(1_000);
  await other.untilOnly({ status: "delivered", tries: 2 });
  expect(ids()).toEqual([ids()[0], ids()[0]]);
});

test("a storage that is away when the end is to be written down is waited for, and nothing is sent twice", async () => {
  let isAway = true;
  let settles = 0;
  const { end, untilOnly, clock, log } = await makeDeliverer({
    meddler: {
      before: ({ operation }) => {
        if (operation === "deliveries.settle") settles += 1;
        if (operation === "deliveries.settle" && isAway) throw away();
      },
    },
  });
  const { url, received } = await receiver();
  await end(url);
  await until(() => settles === 1, "the first attempt to write it down");
  // Longer than it is held.
  await clock.advance(60_000);
  expect(settles).toBeGreaterThan(5);
  isAway = false;
  await clock.advance(5_000);
  await untilOnly({ status: "delivered", tries: 1 });
  expect(received).toHaveLength(1);
  expect(log.messages("warn")).toEqual(["the storage does not respond; trying again until it does"]);
});

test("two on one storage never send the same at the same time", async () => {
  const clock = new ManualClock();
  const storage = asSharedStorage(await openMemory(clock));
  const nodes = await Promise.all([makeDeliverer({ clock, storage }), makeDeliverer({ clock, storage })]);
  const [first, second] = nodes as [(typeof nodes)[number], (typeof nodes)[number]];
  const receivers = await Promise.all(Array.from({ length: 4 }, () => receiver()));
  for (const { url } of receivers) {
    await first.end(url, 20);
    second.deliverer.wake();
  }
  await until(async () => {
    await clock.advance(5);
    return (await first.list()).every(({ status: is }) => is === "delivered");
  }, "all to be delivered");
  const ids = receivers.flatMap((each) => each.ids());
  expect(ids).toHaveLength(80);
  expect(new Set(ids).size).toBe(80);
  expect(first.results.length).toBeGreaterThan(0);
  expect(second.results.length).toBeGreaterThan(0);
});

test("finds without a signal what another node left, and what becomes due", async () => {
  const clock = new ManualClock();
  const { storage, untilOnly } = await makeDeliverer({ clock });
  const { url } = await receiver();
  await settle();
  const task = newTask({ callbackUrl: url });
  await storage.tasks.insert({ tasks: [task], limits: ROOMY });
  await storage.tasks.cancel({ tenant: "default", ids: [task.id], error: null });
  await clock.advance(30_000);
  await untilOnly({ status: "delivered" });
});

test("a delivery during which the clock jumps ahead is neither sent twice nor lost", async () => {
  const { end, list, clock, deliverer } = await makeDeliverer();
  const { url, received } = await receiver(
    status(200),
    (response) => void answer.opened.then(() => status(200)(response)),
  );
  const answer = new Latch();
  await end(url);
  await until(
    async () => (await list())[0]?.status === "delivered",
    "the host to be known, so that it has room",
  );
  await end(url);
  await until(() => received.length === 2, "the request");
  clock.set(clock.now() + 3_600_000);
  deliverer.wake();
  await until(async () => (await list())[0]?.tries === 2, "it to be claimed again");
  answer.open();
  await until(async () => (await list())[0]?.status === "delivered", "its end");
  expect((await list())[0]?.tries).toBe(2);
  expect(received).toHaveLength(2);
});

test("a clock that is set back makes it wait, but not for ever", async () => {
  const { end, untilOnly, clock } = await makeDeliverer();
  const { url } = await receiver(status(500), status(200));
  await end(url);
  await untilOnly({ error: "HTTP 500" });
  clock.set(clock.now() - 60_000);
  await clock.advance(62_000);
  await untilOnly({ status: "delivered" });
});

// --------------------------------------------------------------------------------------------------------- stopping

test("a drain waits for what is due and for what is on its way, and then begins nothing more", async () => {
  const { end, deliverer, list, clock } = await makeDeliverer();
  const answer = new Latch();
  const slow = await receiver((response) => void answer.opened.then(() => status(200)(response)));
  const { received } = slow;
  const url = as("one.test", slow);
  await end(url);
  await until(() => received.length === 1, "the request");
  let drained = false;
  const draining = deliverer.drain(5_000).then(() => {
    drained = true;
  });
  await end(as("other.test", slow));
  await until(() => received.length === 2, "what ended last");
  expect(drained).toBe(false);
  answer.open();
  await draining;
  await end(url);
  await clock.advance(60_000);
  expect(received).toHaveLength(2);
  expect((await list()).map(({ status: is, tries }) => [is, tries])).toEqual([
    ["pending", 0],
    ["delivered", 1],
    ["delivered", 1],
  ]);
});

test("a drain waits neither for what is not due nor when nothing was ever started", async () => {
  const { end, deliverer, untilOnly } = await makeDeliverer();
  const { url } = await receiver(status(500));
  await end(url);
  await untilOnly({ error: "HTTP 500" });
  await deliverer.drain(5_000);
  const { deliverer: idle } = await makeDeliverer({ start: false });
  await idle.drain(5_000);
});

test("a drain drops what takes too long, which is due again after its hold", async () => {
  const { end, untilOnly, deliverer, clock, results } = await makeDeliverer();
  const { url, received, open } = await receiver(hang);
  await end(url);
  await until(() => received.length === 1, "the request");
  const drained = deliverer.drain(3_000);
  await clock.advance(3_000);
  await drained;
  await until(() => open.size === 0, "the connection to be dropped");
  await untilOnly({ status: "pending", tries: 1, error: null, dueAt: clock.now() + 27_000 });
  await settle();
  expect(results, "nothing is known of it").toEqual([]);
});

test("a drain puts back the deliveries that were claimed just before it", async () => {
  const claiming = new Latch();
  const claimed = new Latch();
  const { end, untilOnly, deliverer } = await makeDeliverer({
    meddler: {
      after: ({ operation }) => {
        if (operation !== "deliveries.claim") return;
        claiming.open();
        return claimed.opened;
      },
    },
    start: false,
  });
  const { url, received } = await receiver();
  await end(url);
  deliverer.start();
  await claiming.opened;
  const drained = deliverer.drain(0);
  claimed.open();
  await drained;
  await untilOnly({ status: "pending", tries: 0 });
  expect(received).toEqual([]);
});

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { until } from "../testing/signals.ts";
import { createServer, type ServerOptions } from "./create-server.ts";

/** A server that is soon out of patience; time is real here, since sockets know no other. */
async function openImpatient(options: Partial<ServerOptions> = {}) {
  const { rota, log } = await openTestRota();
  const app = createServer({ rota, log, patience: { requestMs: 300, unreadMs: 200 }, ...options });
  onTestFinished(() => app.close());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const connections = () =>
    new Promise<number>((resolve) => app.server.getConnections((_error, count) => resolve(count)));
  return { rota, app, url, port: Number(new URL(url).port), connections };
}

/** A connection on which `say` writes until the server closes it. Returns what the server wrote. */
function talk(port: number, say: (socket: Socket) => void): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let received = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      received += chunk;
    });
    // A client that writes to a closed connection gets an error.
    socket.on("error", () => {});
    socket.on("close", () => resolve(received));
    say(socket);
  });
}

/** Writes a byte now and then, without end. */
function dribble(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), 20);
  socket.on("close", () => clearInterval(timer));
}

const POST =
  "POST /tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n";

test.each<[string, (socket: Socket) => void]>([
  ["says nothing", () => {}],
  ["begins a header and stops", (socket) => socket.write("GET /health HTTP/1.1\r\nHost: loc")],
  [
    "never comes to the end of its headers",
    (socket) => {
      socket.write("GET /health HTTP/1.1\r\nHost: localhost\r\n");
      dribble(socket, "X: y\r\n");
    },
  ],
  ["begins a body and stops", (socket) => socket.write(`${POST}{"payload": "`)],
  [
    "never comes to the end of its body",
    (socket) => {
      socket.write(`${POST}{"payload": "`);
      dribble(socket, "x");
    },
  ],
])("a client that %s is disconnected with a reason, and no other is", async (_what, say) => {
  const { port, url, rota } = await openImpatient();
  const received = await talk(port, say);
  expect(received).toMatch(/^HTTP\/1\.1 400 .*"the request did not arrive within /s);
  expect((await fetch(`${url}/health`)).status).toBe(200);
  expect((await rota.tasks.counts()).total).toBe(0);
});

const ASK_MUCH = "GET /tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

describe("a client that requests much", () => {
  async function openFull(options?: Partial<ServerOptions>) {
    const server = await openImpatient(options);
    for (let task = 0; task < 12; task++) await server.rota.tasks.submit({ payload: "x".repeat(900_000) });
    return server;
  }

  test.each<[string, (socket: Socket) => void]>([
    ["reads nothing", () => {}],
    ["talks on without reading", (socket) => dribble(socket, "\r\n")],
  ])("and %s is cut off", async (_what, say) => {
    const { port, connections } = await openFull();
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    socket.pause().write(ASK_MUCH);
    say(socket);
    await until(async () => (await connections()) === 1, "the connection to be there");
    await until(async () => (await connections()) === 0, "the connection to be cut");
  });

  test("and reads slowly gets the whole response", async () => {
    const { port } = await openFull();
    const whole = await talk(port, (socket) => {
      socket.write(ASK_MUCH);
      socket.on("data", () => {
        socket.pause();
        setImmediate(() => socket.resume());
      });
    });
    expect(whole.length).toBeGreaterThan(3_000_000);
  });

  describe("without reading it", () => {
    const PATIENT = { requestMs: 30_000, unreadMs: 30_000 };

    test("gets no further response until it has read, and other clients do", async () => {
      const { rota, port, url } = await openFull({
        patience: PATIENT,
        unreadBytes: { max: 100_000_000, maxEach: 3_000_000 },
      });
      const newKey = async () => (await rota.keys.create({ role: "operator", name: "a test" })).key;
      const [idle, other] = [await newKey(), await newKey()];
      const ask = (key: string) => fetch(`${url}/tasks`, { headers: { authorization: `Bearer ${key}` } });
      const isRefused = async () => {
        const answer = await ask(idle);
        await answer.text();
        return answer.status === 429;
      };
      const asked = `GET /tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${idle}\r\n\r\n`;
      const socket = connect(port, "127.0.0.1");
      onTestFinished(() => void socket.destroy());
      socket.on("error", () => {}).pause();
      // The first few are the operating system's to keep.
      await until(() => {
        socket.write(asked);
        return isRefused();
      }, "the key to be refused");
      // Also after the bytes that are on their way have arrived.
      for (let time = 0; time < 3; time++) expect(await isRefused()).toBe(true);
      const refused = await ask(idle);
      expect(refused.headers.get("retry-after")).toBe("1");
      expect(await refused.json()).toMatchObject({ code: "rate_limited", details: { bytesMax: 3_000_000 } });
      const page = await ask(other);
      expect(page.status).toBe(200);
      expect(await page.text()).toContain('"count":4');
      socket.destroy();
      await until(async () => !(await isRefused()), "the key to be admitted again");
    });
  });
});

describe("bodies", () => {
  const [CHUNKED, MEASURED] = ["Transfer-Encoding: chunked", "Content-Length: 60000"];
  const chunks = (length: number, count: number) =>
    `${length.toString(16)}\r\n${"x".repeat(length)}\r\n`.repeat(count);

  async function openWithKeys(options: Partial<ServerOptions> = {}) {
    const server = await openImpatient({ patience: { requestMs: 600_000, unreadMs: 200 }, ...options });
    const newKey = async () => (await server.rota.keys.create({ role: "operator", name: "a test" })).key;
    const keys = [await newKey(), await newKey()] as const;
    const head = (key: string, length: string) =>
      `POST /tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n${length}\r\n\r\n`;
    const post = (key: string, payload: string) =>
      fetch(`${server.url}/tasks`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ payload }),
      });
    return { ...server, keys, head, post };
  }

  test.each([
    ["with a length", MEASURED, "x"],
    ["in chunks", CHUNKED, chunks(30_000, 2)],
  ])(
    "%s that never end take a bounded part of the memory, and not that of other keys",
    async (_what, length, begun) => {
      const { port, keys, head, post } = await openWithKeys({
        bodyBytes: { max: 1_000_000, maxEach: 140_000 },
      });
      const [slow, other] = keys;
      const sockets: Socket[] = [];
      const isRefused = async () => (await post(slow, "x".repeat(20_000))).status === 429;
      await until(() => {
        const socket = connect(port, "127.0.0.1").on("error", () => {});
        onTestFinished(() => void socket.destroy());
        socket.write(`${head(slow, length)}${begun}`);
        sockets.push(socket);
        return isRefused();
      }, "the key to be refused");
      expect(sockets.length).toBeLessThanOrEqual(5);
      const refused = await post(slow, "x".repeat(20_000));
      expect(await refused.json()).toMatchObject({
        code: "rate_limited",
        error: expect.stringContaining(
          "the bodies that are being received of this API key may take 140000 bytes",
        ),
      });
      expect((await post(slow, "small")).status).toBe(202);
      expect((await post(other, "x".repeat(20_000))).status).toBe(202);
      for (const socket of sockets) socket.destroy();
      await until(async () => !(await isRefused()), "the key to be admitted again");
    },
  );

  test("that have been received are not counted any more", async () => {
    const { port, keys, head } = await openWithKeys({ bodyBytes: { max: 1_000_000, maxEach: 100_000 } });
    const body = JSON.stringify({ payload: "x".repeat(59_985) }).padEnd(60_000);
    const times = 5;
    const answer = await talk(port, (socket) => {
      const chunked = `${head(keys[0], CHUNKED)}ea60\r\n${body}\r\n0\r\n\r\n`;
      let answered = 0;
      const next = () =>
        answered === 2 * times
          ? socket.end()
          : socket.write(answered % 2 ? chunked : `${head(keys[0], MEASURED)}${body}`);
      socket.on("data", (text) => {
        if (!String(text).includes("taskId")) return;
        answered += 1;
        next();
      });
      next();
    });
    expect(answer.match(/HTTP\/1\.1 202 /g)).toHaveLength(2 * times);
  });

  test("in very many chunks are refused before they have all arrived", async () => {
    const { port, keys, head } = await openWithKeys();
    const answer = await talk(port, (socket) => {
      socket.write(`${head(keys[0], CHUNKED)}${chunks(1, 17_000)}`);
    });
    expect(answer).toMatch(/^HTTP\/1.1 413 .*each chunk counts as 64 bytes at least/s);
  });
});

test("a server that closes waits for a request that arrives, and not for a connection that never sent a byte", async () => {
  // Nothing else would close a connection before the test is over.
  const { app, port, connections } = await openImpatient({ patience: { requestMs: 600_000, unreadMs: 200 } });
  const silent = talk(port, () => {});
  const arrives = once(app.server, "request");
  const { promise: busy, resolve: onBusy } = Promise.withResolvers<Socket>();
  const answer = talk(port, (socket) => {
    socket.write(`${POST.replace("Content-Length: 100000", "Content-Length: 2\r\nConnection: close")}{`);
    onBusy(socket);
  });
  await arrives;
  await until(async () => (await connections()) === 2, "both connections");
  const closed = app.close();
  expect(await silent).toBe("");
  (await busy).write("}");
  expect(await answer).toMatch(/^HTTP\/1.1 400 /);
  await closed;
});

test("a server that closes responds to a first request that was on its way", async () => {
  const { app, port, connections } = await openImpatient({ patience: { requestMs: 600_000, unreadMs: 200 } });
  const { promise: open, resolve: onOpen } = Promise.withResolvers<Socket>();
  const answer = talk(port, onOpen);
  await until(async () => (await connections()) === 1, "the connection");
  const closed = app.close();
  await until(async () => !app.server.listening, "the server to stop listening");
  (await open).write("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  expect(await answer).toMatch(/^HTTP\/1.1 200 /);
  await closed;
});

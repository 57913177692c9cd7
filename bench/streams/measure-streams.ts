import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { type NewStorage, withStorage } from "../empty-storage.ts";
import type { StreamCost } from "./server-program.ts";

/** Connections that are made at the same time. */
const AT_ONCE = 100;

export interface StreamFigures {
  /** Of each stream: what the process grew by, and what of that is in use. */
  readonly rssKib: number;
  readonly usedKib: number;
  /** Until the last stream has reported the change. */
  readonly notifiedMs: number;
  /** Statements that the storage ran for it. */
  readonly statements: number;
}

/** So many open streams of notifications, in a server of their own, and one change that all of them report. */
export function measureStreams(newStorage: NewStorage, count: number): Promise<StreamFigures> {
  return withStorage(newStorage, async (target) => {
    const program = fileURLToPath(new URL("server-program.ts", import.meta.url));
    const server = fork(program, [target.url], { execArgv: [...process.execArgv, "--expose-gc"] });
    try {
      const [url] = await once(server, "message");
      const { port } = new URL(String(url));
      const streams = new Streams(Number(port));
      // What the server makes once, for the first of them, is not what one takes.
      await streams.open(AT_ONCE);
      await notify(String(url), 1);
      await streams.allNotified();
      const before = await costOf(server);
      await streams.open(count);
      const after = await costOf(server);
      const begun = performance.now();
      await notify(String(url), 2);
      await streams.allNotified();
      const notifiedMs = performance.now() - begun;
      const { statements } = await costOf(server);
      streams.close();
      return {
        rssKib: (after.rssBytes - before.rssBytes) / 1_024 / count,
        usedKib: (after.usedBytes - before.usedBytes) / 1_024 / count,
        notifiedMs,
        statements: statements - after.statements,
      };
    } finally {
      server.disconnect();
      await once(server, "exit");
    }
  });
}

async function costOf(server: ChildProcess): Promise<StreamCost> {
  server.send("cost");
  const [cost] = await once(server, "message");
  return cost as StreamCost;
}

/** Creates a schedule and deletes it again, which sends notifications. */
async function notify(url: string, id: number): Promise<void> {
  const response = await fetch(`${url}/v1/writs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: `/schedule every day: look\n/schedule cancel ${id}` }),
  });
  const { ok, output } = (await response.json()) as { ok: boolean; output: string };
  if (!ok) throw new Error(output);
}

/** Readers that only count what they receive. */
class Streams {
  readonly #port: number;
  readonly #sockets: Socket[] = [];
  #notified = 0;
  #onAllNotified = () => {};

  constructor(port: number) {
    this.#port = port;
  }

  /** That many more. */
  async open(count: number): Promise<void> {
    for (let opened = 0; opened < count; opened += AT_ONCE) {
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - opened) }, () => this.#openOne()));
    }
  }

  /** Resolves once each has received something since the last call. */
  async allNotified(): Promise<void> {
    if (this.#notified < this.#sockets.length) {
      await new Promise<void>((resolve) => {
        this.#onAllNotified = resolve;
      });
    }
    this.#notified = 0;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #openOne(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#port, "127.0.0.1");
      this.#sockets.push(socket);
      socket.on("error", reject);
      socket.on("data", (chunk) => {
        if (chunk.includes("event: open")) resolve();
        if (!chunk.includes("event: notification")) return;
        this.#notified += 1;
        if (this.#notified === this.#sockets.length) this.#onAllNotified();
      });
      socket.write("GET /v1/notifications/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    });
  }
}

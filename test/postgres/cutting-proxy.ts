import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface CuttingProxy {
  /** The same database, reached through the proxy. */
  url: string;
  /**
   * Loses the answer to the next message that holds `text`, such as the name of a statement, and cuts its connection.
   * What it asked for is done all the same.
   */
  loseAnswerTo(text: string): void;
  /** From now on nothing gets through, in either direction, without an error on either side. */
  freeze(): void;
  /** The same with the nth message from now on that holds `text`. Resolves then, with the connection that sent it. */
  freezeAt(text: string, nth: number): Promise<FrozenConnection>;
  /** New connections get through again; one that has lost something stays silent for good. */
  thaw(): void;
  close(): void;
}

export interface FrozenConnection {
  /** Resolves once the client has closed it. */
  readonly closed: Promise<unknown>;
}

/**
 * Stands between a storage and its PostgreSQL, to lose an answer for certain. A connection that is merely killed breaks
 * before the commit nearly every time, which is the easy case.
 */
export async function startCuttingProxy(databaseUrl: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let doomed: string | null = null;
  let frozen = false;
  let freezer = { text: "", left: 0, freeze: (_client: Socket) => {} };

  const proxy = createServer((client) => {
    const server = connect(Number(port), hostname);
    // It has lost something on its way, so that whatever came later would make no sense.
    let isDeaf = false;
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket);
      // Either end may be torn down at any moment; then the other is closed, too, if that is still possible.
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        isDeaf ||= frozen;
        if (!isDeaf) other.destroy();
      });
    }
    let isDoomed = false;
    client.on("data", (data) => {
      if (freezer.left > 0 && data.includes(freezer.text) && --freezer.left === 0) freezer.freeze(client);
      isDeaf ||= frozen;
      if (isDeaf) return;
      if (doomed !== null && data.includes(doomed)) {
        isDoomed = true;
        doomed = null;
      }
      server.write(data);
    });
    server.on("data", (data) => {
      isDeaf ||= frozen;
      if (isDoomed) client.destroy();
      else if (!isDeaf) client.write(data);
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");

  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String((proxy.address() as AddressInfo).port);
  return {
    url: url.href,
    loseAnswerTo(text) {
      doomed = text;
    },
    freeze() {
      frozen = true;
    },
    freezeAt(text, nth) {
      return new Promise((resolve) => {
        const freeze = (client: Socket) => {
          frozen = true;
          resolve({ closed: once(client, "close") });
        };
        freezer = { text, left: nth, freeze };
      });
    },
    thaw() {
      frozen = false;
    },
    close() {
      proxy.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

import type { AddressInfo } from "node:net";
import { RotaError } from "../model/errors.ts";
import { createServer, type ServerOptions } from "./create-server.ts";

/** How long requests may go on once the server closes; then their connections are cut. */
const CLOSE_MS = 2_000;

export interface RunningServer {
  readonly url: string;
  /** Takes no more connections, lets the requests under way end, cuts what is left. */
  close(): Promise<void>;
}

/** Listens for requests. Port 0 picks a free one. */
export async function listen(
  options: ServerOptions & { readonly host: string; readonly port: number },
): Promise<RunningServer> {
  const { host, port } = options;
  const app = createServer(options);
  try {
    // By its name Fastify would listen with a second server for IPv6, which none of our settings reach.
    await app.listen({ host: host === "localhost" ? "127.0.0.1" : host, port });
  } catch (error) {
    await app.close();
    throw cannotListen(error as NodeJS.ErrnoException, host, port);
  }
  const { port: found } = app.server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${found}`,
    async close() {
      const cut = setTimeout(() => app.server.closeAllConnections(), CLOSE_MS);
      await app.close();
      clearTimeout(cut);
    },
  };
}

function cannotListen(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code) {
    case "EADDRINUSE":
      return new RotaError(
        "conflict",
        `port ${port} of ${host} is taken: stop the program that uses it, or choose another with --port`,
        { cause: error },
      );
    case "EACCES":
      return new RotaError(
        "forbidden",
        `this user may not listen on port ${port}: choose one above 1023 with --port`,
        {
          cause: error,
        },
      );
    case "EADDRNOTAVAIL":
      return new RotaError(
        "not_found",
        `this machine does not have the address ${host}: choose another with --host`,
        {
          cause: error,
        },
      );
    default:
      return error;
  }
}

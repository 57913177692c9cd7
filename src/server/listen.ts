import { once } from "node:events";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { systemClock } from "../clock/system-clock.ts";
import { RotaError } from "../model/errors.ts";
import { createServer, type ServerOptions } from "./create-server.ts";

/** Names of this machine that no other machine can reach. */
const LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "::1"];

/** How long requests may run once the server closes. Then their connections are closed. */
const CLOSE_MS = 2_000;

export interface RunningServer {
  readonly url: string;
  /** Accepts no more connections, lets running requests end, and closes the remaining connections after two seconds. */
  close(): Promise<void>;
}

export interface ListenOptions extends Omit<ServerOptions, "isLocal"> {
  readonly host: string;
  readonly port: number;
  /** How to create a key. Shown when the server needs a key and has none. */
  readonly howToMakeKey?: string;
}

/**
 * Throws the error of `listen` for an address that cannot be used. Called before the storage is opened, so that a server that
 * cannot start does not create a database.
 */
export async function checkAddress({ host, port }: Pick<ListenOptions, "host" | "port">): Promise<void> {
  const probe = createSocketServer();
  try {
    probe.listen({ host: boundHost(host), port });
    await once(probe, "listening");
  } catch (error) {
    throw cannotListen(error as NodeJS.ErrnoException, host, port);
  }
  probe.close();
  await once(probe, "close");
}

/**
 * Listens for requests. Port 0 picks a free one. Throws `forbidden` if other machines can reach the address and no key is valid.
 */
export async function listen(options: ListenOptions): Promise<RunningServer> {
  const { host, port } = options;
  const isLocal = LOOPBACK_HOSTS.includes(host.toLowerCase());
  // Read in any case, so that the first request finds it cached.
  const hasKeys = await options.rota.keys.any();
  if (!isLocal && !(hasKeys && (await hasValidKey(options)))) throw keyNeeded(options);
  const app = createServer({ ...options, isLocal });
  try {
    await app.listen({ host: boundHost(host), port });
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

/** For `localhost` Fastify would open a second server for IPv6, which ignores our settings. */
function boundHost(host: string): string {
  return host.toLowerCase() === "localhost" ? "127.0.0.1" : host;
}

/** An expired key admits no request. Reading all keys is fine here: it happens once, at the start. */
async function hasValidKey({ rota, clock = systemClock }: ListenOptions): Promise<boolean> {
  const { tenants } = await rota.tenants.list();
  for (const { id: tenantId } of tenants) {
    const { keys } = await rota.keys.list({ tenantId });
    if (keys.some(({ expiresAt }) => expiresAt === undefined || Date.parse(expiresAt) > clock.now()))
      return true;
  }
  return false;
}

function keyNeeded({ host, howToMakeKey = "create one with `rota.keys.create`" }: ListenOptions): RotaError {
  return new RotaError(
    "forbidden",
    `${host} is reachable from other machines, so an API key is required and no valid one exists: ${howToMakeKey}`,
  );
}

function cannotListen(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code) {
    case "EADDRINUSE":
      return new RotaError(
        "conflict",
        `port ${port} of ${host} is taken: stop the program that uses it, or choose another port with --port`,
        { cause: error },
      );
    case "EACCES":
      return new RotaError(
        "forbidden",
        `this user may not listen on port ${port}: choose a port above 1023 with --port`,
        {
          cause: error,
        },
      );
    case "EADDRNOTAVAIL":
      return new RotaError(
        "not_found",
        `this machine does not have the address ${host}: choose another address with --host`,
        {
          cause: error,
        },
      );
    case "ENOTFOUND":
      return new RotaError(
        "not_found",
        `the name ${host} has no address: write an IP address, or a name that this machine can resolve, with --host`,
        { cause: error },
      );
    default:
      return error;
  }
}

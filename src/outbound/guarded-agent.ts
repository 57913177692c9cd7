import type { LookupFunction, Socket } from "node:net";
import type { Agent, buildConnector } from "undici";
import { plainHost } from "../model/outbound-target.ts";
import type { Lookup } from "./name-lookup.ts";

/** How long a host may take to accept a connection. */
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection is kept for the next call. */
const KEEP_ALIVE_MS = 30_000;

/** The same error for a name that does not exist and for one that resolves to a private address. */
export const NOT_RESOLVED = "does not resolve to a public address";

/** The target must not be called. A retry fails as well, unless the configuration changes. */
export class TargetRefused extends Error {
  override readonly name = "TargetRefused";
}

export interface GuardedAgentOptions {
  /** Why a host must not be called, by its name alone; null: it may be. */
  readonly hostFault: (host: string) => string | null;
  /** Why this address of a host must not be called; null: it may be. */
  readonly addressFault: (host: string, address: string) => string | null;
  readonly lookup: Lookup;
}

type Connect = ReturnType<typeof buildConnector>;

/**
 * An agent that checks its target three times: the host, since addresses in a URL are never looked up; every address of a
 * name; and the address it is connected to, before a single byte is sent.
 */
export async function createGuardedAgent(options: GuardedAgentOptions): Promise<Agent> {
  const undici = await import("undici");
  return new undici.Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: guardedConnect(
      undici.buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false, lookup: guardedLookup(options) }),
      options,
    ),
  });
}

function guardedConnect(connect: Connect, { hostFault, addressFault }: GuardedAgentOptions): Connect {
  return (target, callback) => {
    const host = plainHost(target.hostname);
    const fault = hostFault(host);
    if (fault !== null) {
      callback(refused(fault), null);
      return;
    }
    // TLS would send data as soon as it is connected. So it is started only after the address of the connection is checked.
    const { servername: _, ...plain } = target;
    const port = target.port || (target.protocol === "https:" ? "443" : "80");
    connect({ ...plain, protocol: "http:", port }, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null);
        return;
      }
      const wrong = socketFault(socket, (address) => addressFault(host, address));
      if (wrong !== null) {
        socket.destroy();
        callback(wrong, null);
      } else if (target.protocol === "https:") {
        connect({ ...target, httpSocket: socket }, callback);
      } else {
        callback(null, socket);
      }
    });
  };
}

function socketFault(socket: Socket, addressFault: (address: string) => string | null): Error | null {
  if (socket.remoteAddress === undefined) return new Error("the connection was closed at once");
  const fault = addressFault(socket.remoteAddress);
  return fault === null ? null : refused(fault);
}

/**
 * Resolves names for `net.connect`. A name with an address that must not be called fails like one that does not exist, so that
 * users cannot probe the names of a private network.
 */
function guardedLookup({ lookup, addressFault }: GuardedAgentOptions): LookupFunction {
  return (name, { family, all }, callback) => {
    lookup(name).then(
      (found) => {
        const isRefused = found.some(({ address }) => addressFault(plainHost(name), address) !== null);
        const fitting = found.filter((each) => !family || each.family === familyNumber(family));
        const [first] = fitting;
        if (isRefused || first === undefined) callback(unresolved(name), []);
        else if (all) callback(null, [...fitting]);
        else callback(null, first.address, first.family);
      },
      () => callback(unresolved(name), []),
    );
  };
}

function familyNumber(family: number | string): number {
  return typeof family === "number" ? family : Number(family.replace("IPv", ""));
}

function refused(fault: string): TargetRefused {
  return new TargetRefused(`the URL must ${fault}`);
}

/** Has the form of the system's own error, so that it counts as a request that was never sent. */
function unresolved(name: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${name} ${NOT_RESOLVED}`), { syscall: "getaddrinfo" });
}

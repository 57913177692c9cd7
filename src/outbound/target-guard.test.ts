import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { fetchWithLimits } from "../../test/support/fetch-with-limits.ts";
import { serve } from "../../test/support/http-server.ts";
import { RotaError } from "../model/errors.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { until } from "../testing/signals.ts";
import { createGuardedAgent, NOT_RESOLVED, TargetRefused } from "./guarded-agent.ts";
import type { Lookup } from "./name-lookup.ts";
import { TargetGuard } from "./target-guard.ts";

const PUBLIC = "1.1.1.1";

/** Returns these lists of addresses in turn, then always the last. */
function answering(...answers: readonly string[][]): Lookup {
  const left = [...answers];
  return async () => {
    const addresses = (left.length > 1 ? left.shift() : left[0]) ?? [];
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
}

interface GuardOptions {
  readonly allow?: string[];
  readonly deny?: string[];
  readonly lookup?: Lookup;
}

function guardOf({ allow = [], deny = [], lookup = answering([PUBLIC]) }: GuardOptions = {}) {
  const guard = new TargetGuard({ allow, deny, clock: new ManualClock(), lookup });
  onTestFinished(() => guard.close());
  return guard;
}

function call(guard: TargetGuard, url: string) {
  const { signal } = new AbortController();
  return fetchWithLimits(url, { method: "POST", body: "{}", signal, bodyBytesMax: 100, now: 0, guard });
}

/** A server on this machine, and how often it was called. */
async function loopback() {
  const requests: string[] = [];
  const url = await serve((request, response) => {
    requests.push(request.url ?? "");
    if (request.url === "/away") response.writeHead(302, { location: "/elsewhere" });
    response.end("inside");
  });
  return { port: new URL(url).port, requests };
}

// --------------------------------------------------------------------------------------------------- the URL alone

test.each([
  "http://127.0.0.1/",
  "http://127.1/",
  "http://2130706433/",
  "http://0x7f000001/",
  "http://0177.0.0.1/",
  "http://0x7f.0.0x0.1/",
  "http://127.0.0.1./",
  "http://127。0。0。1/",
  "http://①②⑦.0.0.1/",
  "http://%31%32%37.0.0.1/",
  "http://0/",
  "http://0.0.0.0/",
  "http://[::]/",
  "http://[::1]/",
  "http://[0:0:0:0:0:0:0:1]/",
  "http://[::ffff:127.0.0.1]/",
  "http://[::ffff:7f00:1]/",
  "http://[::127.0.0.1]/",
  "http://[64:ff9b::127.0.0.1]/",
  "http://[2002:7f00:1::]/",
  "http://[fe80::1]/",
  "http://[fd00::1]/",
  "http://169.254.169.254/latest/meta-data/",
  "http://10.0.0.1/",
  "http://192.168.1.1:8080/",
  "http://100.64.0.1/",
  "http://224.0.0.1/",
  "http://255.255.255.255/",
  "http://localhost/",
  "http://LocalHost:3000/",
  "http://localhost./",
  "http://api.localhost/",
  "http://api.localhost../",
  "http://168.63.129.16/machine/?comp=goalstate",
  "http://metadata.google.internal/",
  "http://printer.local/",
  "http://wiki.corp./",
  "http://router.home.arpa/",
  "http://redis:6379/",
])("%s is refused", (url) => {
  expect(guardOf().urlFault(url)).toMatch(/^not lead to /);
});

test.each([
  "ftp://example.com/",
  "file:///etc/passwd",
  "http://user:secret@example.com/",
  "nothing",
  `https://example.com/${"x".repeat(3_000)}`,
])("%s has no form that is called", (url) => {
  const fault = guardOf({ allow: ["example.com"] }).urlFault(url);
  expect(fault).toMatch(/http|password|characters/);
  expect(fault).not.toContain("secret");
});

test.each([
  "http://example.com/",
  "https://1.1.1.1:8443/x?y#z",
  "http://[2606:4700::1111]/",
  "http://localhost.example/",
])("%s may be called", (url) => {
  expect(guardOf().urlFault(url)).toBeNull();
});

test.each([
  [["127.0.0.1"], "http://2130706433/", true],
  [["127.0.0.1"], "http://[::ffff:127.0.0.1]/", true],
  [["127.0.0.1"], "http://127.0.0.2/", false],
  [["127.0.0.0/8"], "http://127.0.0.2/", true],
  [["127.0.0.0/8"], "http://[::1]/", false],
  [["127.0.0.1"], "http://localhost/", false],
  [["::1"], "http://[0:0::1]/", true],
  [["fd00::/8"], "http://[fd12::1]/", true],
  [["localhost"], "http://LOCALHOST./", true],
  [["localhost"], "http://127.0.0.1/", false],
  [["*.localhost"], "http://api.localhost/", true],
  [["*.localhost"], "http://localhost/", false],
  [["0.0.0.0/0", "::/0"], "http://10.0.0.1/", true],
])("with %j, %s is %s", (allow, url, opened) => {
  expect(guardOf({ allow }).urlFault(url) === null).toBe(opened);
});

test.each([
  [[], ["evil.example"], "http://evil.example/", false],
  [[], ["evil.example"], "http://api.evil.example/", true],
  [[], ["*.evil.example"], "http://api.evil.example/", false],
  [[], ["1.1.1.0/24"], "http://1.1.1.1/", false],
  [[], ["1.1.1.0/24"], "http://[::ffff:1.1.1.1]/", false],
  [["10.0.0.0/8"], ["10.0.0.5"], "http://10.0.0.5/", false],
  [["10.0.0.0/8"], ["10.0.0.5"], "http://10.0.0.6/", true],
  [["hooks.internal"], ["*.internal"], "http://hooks.internal/", false],
])("allowing %j and denying %j, %s is %s", (allow, deny, url, opened) => {
  const fault = guardOf({ allow, deny }).urlFault(url);
  expect(fault === null).toBe(opened);
  if (!opened)
    expect(fault).toMatch(/, which `outbound\.deny` of the configuration refuses: name another host$/);
});

test("a name is refused for each of its addresses that is denied, be the name allowed or not", async () => {
  for (const allow of [[], ["hooks.example"]]) {
    const guard = guardOf({ allow, deny: ["1.1.1.1"] });
    expect(await refusal(guard, "https://hooks.example/")).toContain("`outbound.deny`");
    await expect(call(guard, "http://hooks.example/")).rejects.toThrow(NOT_RESOLVED);
  }
});

test("a faulty entry is refused with a sentence that does not repeat it", () => {
  expect(() => guardOf({ allow: ["10.0.0.0/8", "http://user:secret@x/"] })).toThrow(
    /^`outbound\.allow\.1` must be a host .*without scheme, port and path$/,
  );
});

// ---------------------------------------------------------------------------------------------------- at submission

async function refusal(guard: TargetGuard, url: string): Promise<string> {
  const error = await guard.check(url, "callbackUrl").then(
    () => null,
    (thrown) => thrown,
  );
  if (!(error instanceof RotaError)) return String(error);
  expect(error).toMatchObject({ code: "invalid_field", details: { field: "callbackUrl" } });
  return error.message;
}

test("says which field is wrong, where it leads and what to write instead, but no more of the URL", async () => {
  expect(await refusal(guardOf(), "http://10.0.0.5:81/path?token=secret")).toBe(
    '`callbackUrl` must not lead to 10.0.0.5, a private address: name a public host, or add "10.0.0.5" to ' +
      "`outbound.allow` of the configuration",
  );
});

test("refuses a name that has an address that is not public, and keeps that address to itself", async () => {
  for (const addresses of [["10.9.8.7"], [PUBLIC, "10.9.8.7"], [PUBLIC, "fd00::9"]]) {
    const message = await refusal(guardOf({ lookup: answering(addresses) }), "https://hooks.example/secret");
    expect(message).toMatch(
      /^`callbackUrl` must not lead to hooks\.example, which does not resolve to a public address: .* "hooks\.example"/,
    );
    expect(message).not.toMatch(/10\.9|fd00|secret/);
  }
});

test("lets pass what is public, what is allowed, and what cannot be resolved", async () => {
  const away: Lookup = () => Promise.reject(new Error("ENOTFOUND"));
  const inside = answering(["10.9.8.7"]);
  expect(await refusal(guardOf(), "https://hooks.example/")).toBe("null");
  expect(await refusal(guardOf({ lookup: away }), "https://hooks.example/")).toBe("null");
  for (const allow of [["hooks.example"], ["*.example"], ["10.9.0.0/16"], ["10.9.8.7"]]) {
    expect(await refusal(guardOf({ allow, lookup: inside }), "https://hooks.example/"), allow.join()).toBe(
      "null",
    );
  }
});

// ---------------------------------------------------------------------------------------------------- at connection

test("does not connect to a name that leads elsewhere by the time it is called", async () => {
  const { port, requests } = await loopback();
  const guard = guardOf({ lookup: answering([PUBLIC], ["127.0.0.1"]) });
  const url = `http://rebound.example:${port}/path`;
  await guard.check(url, "callbackUrl");
  await expect(call(guard, url)).rejects.toThrow(NOT_RESOLVED);
  expect(requests).toEqual([]);
});

test("does not connect to a name of which one address is public and another is not", async () => {
  const { port, requests } = await loopback();
  for (const addresses of [
    [PUBLIC, "127.0.0.1"],
    ["127.0.0.1", PUBLIC],
  ]) {
    const guard = guardOf({ lookup: answering(addresses) });
    await expect(call(guard, `http://both.example:${port}/`)).rejects.toThrow(NOT_RESOLVED);
  }
  expect(requests).toEqual([]);
});

test.each(["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost", "localhost."])(
  "does not connect to %s although no check was made before",
  async (host) => {
    const { port, requests } = await loopback();
    const guard = guardOf({ lookup: answering(["127.0.0.1"]) });
    await expect(call(guard, `http://${host}:${port}/`)).rejects.toThrow(TargetRefused);
    expect(requests).toEqual([]);
  },
);

test.each([
  ["127.0.0.1", "127.0.0.1"],
  ["127.0.0.0/8", "2130706433"],
  ["127.0.0.1", "named.example"],
  ["named.example", "named.example"],
  ["*.example", "named.example"],
  ["localhost", "localhost"],
])("what %s opens is reached at %s", async (entry, host) => {
  const { port, requests } = await loopback();
  const guard = guardOf({ allow: [entry], lookup: answering(["127.0.0.1"]) });
  expect(await call(guard, `http://${host}:${port}/in`)).toMatchObject({ status: 200, body: "inside" });
  expect(requests).toEqual(["/in"]);
});

test("does not follow a redirect, not even within what is allowed", async () => {
  const { port, requests } = await loopback();
  const answer = await call(guardOf({ allow: ["127.0.0.1"] }), `http://127.0.0.1:${port}/away`);
  expect(answer.status).toBe(302);
  expect(requests).toEqual(["/away"]);
});

test("a name that does not exist fails as one does that leads into a private network", async () => {
  const away: Lookup = () => Promise.reject(new Error("ENOTFOUND"));
  for (const lookup of [answering([]), away, answering(["10.9.8.7"])]) {
    await expect(call(guardOf({ lookup }), "http://nowhere.example/")).rejects.toThrow(
      /^cannot reach http:\/\/nowhere\.example: nowhere\.example does not resolve to a public address$/,
    );
  }
});

/** A listener that records what it receives, over IPv4 or IPv6. */
async function listener(host: string): Promise<{ port: number; received: Buffer[]; sockets: Socket[] }> {
  const received: Buffer[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("data", (bytes) => {
      received.push(bytes);
      socket.destroy();
    });
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, host, resolve);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, received, sockets };
}

test("does not even connect to an address that its name leads to", async () => {
  const { port, sockets } = await listener("127.0.0.1");
  const guard = guardOf({ lookup: answering(["127.0.0.1"]) });
  await expect(call(guard, `http://rebound.example:${port}/`)).rejects.toThrow(NOT_RESOLVED);
  // A connection of our own that gets there shows that none came before it.
  await expect(call(guardOf({ allow: ["127.0.0.1"] }), `http://127.0.0.1:${port}/`)).rejects.toThrow();
  expect(sockets).toHaveLength(1);
});

test.each(["http", "https"])(
  "sends nothing over %s to a connection that ended up elsewhere",
  async (scheme) => {
    const { port, received, sockets } = await listener("127.0.0.1");
    const lookup = answering(["127.0.0.1"]);
    let looks = 0;
    // The look at the name is passed, the look at the connection is not.
    const agent = await createGuardedAgent({
      lookup,
      hostFault: () => null,
      addressFault: () => (++looks === 1 ? null : "not be there"),
    });
    onTestFinished(() => agent.close());
    const { fetch } = await import("undici");
    const failure = await fetch(`${scheme}://named.example:${port}/`, { dispatcher: agent }).catch(
      (error) => error,
    );
    expect(failure.cause).toBeInstanceOf(TargetRefused);
    await until(() => sockets.length === 1 && sockets.every(({ closed }) => closed), "its end");
    expect(received).toEqual([]);
  },
);

test("begins TLS with the name of the host on a connection that may be", async () => {
  const { port, received } = await listener("127.0.0.1");
  const guard = guardOf({ allow: ["named.example"], lookup: answering(["127.0.0.1"]) });
  await expect(call(guard, `https://named.example:${port}/`)).rejects.toThrow();
  expect(received[0]?.[0], "a TLS handshake").toBe(0x16);
  expect(received[0]?.includes("named.example")).toBe(true);
});

test("looks at IPv6 as closely", async ({ skip }) => {
  const found = await listener("::1").catch(() => null);
  if (found === null) return skip("this machine has no IPv6");
  const url = `http://[::1]:${found.port}/`;
  await expect(call(guardOf(), url)).rejects.toThrow("the URL must not lead to ::1, a loopback address");
  expect(found.sockets).toHaveLength(0);
  await expect(call(guardOf({ allow: ["::/64"] }), url)).rejects.not.toThrow(TargetRefused);
  expect(found.received.toString()).toContain("POST / HTTP/1.1");
});

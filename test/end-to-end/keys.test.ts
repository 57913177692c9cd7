import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sendRaw } from "../support/http.ts";
import { serveConfig } from "../support/serve-config.ts";
import { run } from "./commands.ts";
import { eventually, newFolder, startServer } from "./server-process.ts";

const KEY = /^rota_[\w-]{43}\n$/;

/** A storage in a new folder, and the command line there. */
function somewhere() {
  const folder = newFolder();
  const storage = `sqlite:${join(folder, "rota.db")}`;
  return { folder, storage, rota: (...args: string[]) => run(args, { folder }) };
}

describe("where other machines can reach it,", () => {
  test("Rota serves once a key was made as the refusal says, and callers that have it", async () => {
    const { storage, rota } = somewhere();
    const refused = await rota("serve", "--host", "0.0.0.0", "--port", "0", "--storage", storage);
    expect(refused.code).toBe(1);
    const [, command = ""] = /\n {2}rota (keys create .*)\n$/.exec(refused.stderr) ?? [];
    const made = await rota(...command.split(" "));
    expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(KEY)]);
    expect(made.stderr).toMatch(/^key_\w+ was created\. Store the key now: it is shown only this once\./);

    const server = await startServer({ storage, args: ["--host", "0.0.0.0"] });
    const url = server.url.replace("0.0.0.0", "127.0.0.1");
    const key = made.stdout.trim();
    const environment = { ROTA_URL: url, ROTA_KEY: key };
    expect((await run(["tasks", "--url", url])).code).toBe(2);
    const submitted = await run(["submit", "--message", "hello", "--wait"], { environment });
    expect([submitted.code, submitted.stdout]).toEqual([0, "hello\n"]);
    expect((await run(["tasks", "--url", url, "--key", key, "--json"])).code).toBe(0);
    // By its name in the network, as a proxy would ask.
    const head = `GET /tasks HTTP/1.1\r\nHost: rota.example.com\r\nConnection: close\r\n`;
    expect((await sendRaw(url, `${head}\r\n`)).split("\r\n")[0]).toContain("401");
    expect((await sendRaw(url, `${head}Authorization: Bearer ${key}\r\n\r\n`)).split("\r\n")[0]).toContain(
      "200",
    );
  });
});

test("rota me says whose key it is, and which server responds", async () => {
  const { storage, rota } = somewhere();
  const server = await startServer({ storage });
  const without = await rota("me", "--url", server.url);
  expect([without.code, without.stdout]).toEqual([
    0,
    expect.stringMatching(
      /^key +none: the server has no keys, so it needs none\nrole +admin\ntenant +default \(default\)\n/,
    ),
  ]);
  const made = await rota("keys", "create", "--role", "viewer", "--name", "laptop", "--url", server.url);
  const key = made.stdout.trim();
  const mine = await rota("me", "--url", server.url, "--key", key);
  expect(mine.stdout).toMatch(/^key +laptop \(key_\w+\)\nrole +viewer\n/);
  const json = await rota("me", "--url", server.url, "--key", key, "--json");
  expect(JSON.parse(json.stdout)).toMatchObject({ role: "viewer", keyName: "laptop", isLocal: true });
});

describe("rota keys", () => {
  test("makes, lists and takes away keys where they are stored, and all of it is in the audit log", async () => {
    const { storage, rota } = somewhere();
    expect(await rota("keys", "--storage", storage)).toMatchObject({
      code: 0,
      stdout: "",
      stderr: 'There are no keys; create one with "rota keys create --role admin --name NAME".\n',
    });
    const admin = await rota(
      "keys",
      "create",
      "--role",
      "admin",
      "--name",
      "me",
      "--storage",
      storage,
      "--json",
    );
    const { id, key } = JSON.parse(admin.stdout);
    const agent = ["--role", "agent", "--agent", "scout", "--name", "its own", "--expires", "30d"];
    const second = await rota("keys", "create", ...agent, "--storage", storage, "--json");
    const worker = ["--role", "worker", "--agents", "py,crawl", "--name", "gpu"];
    const third = await rota("keys", "create", ...worker, "--storage", storage, "--json");
    const listed = await rota("keys", "--storage", storage);
    expect(listed.stdout).toMatch(/^KEY +ROLE +NAME +AGENTS +CREATED +LAST USED +EXPIRES\n/);
    expect(listed.stdout).toMatch(/ agent +its own +scout +\S.* never +in 30 d\n/);
    expect(listed.stdout).toMatch(/ worker +gpu +py, crawl +\S.* never +never\n/);
    expect(listed.stdout).not.toContain("rota_");
    const { id: agentsId } = JSON.parse(second.stdout);
    expect((await rota("keys", "delete", agentsId, "--storage", storage)).stdout).toBe(
      `${agentsId} deleted\n`,
    );
    expect((await rota("keys", "delete", agentsId, "--storage", storage)).code).toBe(3);

    const server = await startServer({ storage });
    const { body } = await server.ask("/v1/audit", { headers: { authorization: `Bearer ${key}` } });
    expect(body.entries).toMatchObject([
      { route: "rota keys delete", subject: agentsId, keyId: null },
      { route: "rota keys create", subject: JSON.parse(third.stdout).id },
      { route: "rota keys create", subject: agentsId },
      { route: "rota keys create", subject: id },
    ]);
  });

  test("takes the storage that is configured when none is named, and none that forgets", async () => {
    const { rota } = somewhere();
    const made = await rota("keys", "create", "--role", "viewer", "--name", "me", "--storage");
    expect(made.stdout).toMatch(KEY);
    expect((await rota("keys", "list", "--storage", "sqlite:rota.db", "--json")).stdout).toContain(
      '"viewer"',
    );
    const refused = await rota("keys", "list", "--storage", "sqlite::memory:");
    expect([refused.code, refused.stderr]).toEqual([
      2,
      "error: a storage in memory keeps no key: name another with --storage, like sqlite:rota.db\n",
    ]);
  });

  test("says what the first key of a server changes, and how to recover from one that cannot create others", async () => {
    const server = await serveConfig({ folder: newFolder() });
    const environment = { ROTA_URL: server.url };
    const made = await run(["keys", "create", "--role", "viewer", "--name", "me"], { environment });
    expect(made.stderr).toContain(
      "It is the first key: from now on the server refuses every request without a key.",
    );
    expect(made.stderr).toContain("rota keys create --role admin --name me --storage");
  });

  test("goes to the server otherwise: the first key there, and from then on with one", async () => {
    const server = await serveConfig({ folder: newFolder() });
    const environment = { ROTA_URL: server.url };
    const made = await run(["keys", "create", "--role", "admin", "--name", "me"], { environment });
    expect(made.stdout).toMatch(KEY);
    const refused = await run(["keys"], { environment });
    expect([refused.code, refused.stderr]).toEqual([
      2,
      "error: an API key is missing: send it as `Authorization: Bearer rota_…`; give it with --key or ROTA_KEY\n",
    ]);
    const withKey = { environment: { ...environment, ROTA_KEY: made.stdout.trim() } };
    expect((await run(["keys", "list"], withKey)).stdout).toContain(" admin ");
    const wrong = await run(["keys", "create", "--role", "root", "--name", "me"], withKey);
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      'error: `role` must be viewer, agent, worker, operator, tenant-admin or admin, not "root"\n',
    ]);
  });
});

describe("rota tenants", () => {
  test("makes webhook secrets, which are shown once and not in the audit log", async () => {
    const server = await serveConfig({ folder: newFolder() });
    const rota = (...args: string[]) => run(args, { environment: { ROTA_URL: server.url } });
    const { id } = (await server.ask("/v1/tenants", { json: { name: "acme" } })).body;
    const first = await rota("tenants", "rotate-secret", id);
    expect(first.stdout).toMatch(/^whsec_\S{44}\n$/);
    expect(first.stderr).toMatch(/^Store the secret now: it is shown only this once\. .* webhooks\.\n$/);
    expect((await rota("tenants", "rotate-secret", id)).stderr).toContain(
      "The previous secret signs as well until ",
    );
    const { body: audit } = await server.ask("/v1/audit");
    expect(audit.entries[0]).toMatchObject({
      route: "POST /v1/tenants/{id}/webhook-secret",
      subject: id,
    });
    expect(JSON.stringify(audit)).not.toContain("whsec_");
  });

  test("creates, lists, shows, changes, disables, enables and deletes them, and keys are made for them", async () => {
    const server = await serveConfig({ folder: newFolder() });
    const environment: Record<string, string> = { ROTA_URL: server.url };
    const rota = (...args: string[]) => run(args, { environment });
    const key = (await rota("keys", "create", "--role", "admin", "--name", "me")).stdout.trim();
    environment["ROTA_KEY"] = key;
    const made = JSON.parse((await rota("tenants", "create", "acme", "--max-queued", "5", "--json")).stdout);
    expect(made).toMatchObject({ name: "acme", limits: { maxQueued: 5, maxInflight: null } });
    const changed = await rota(
      "tenants",
      "update",
      made.id,
      "--max-queued",
      "none",
      "--max-inflight",
      "2",
      "--max-sessions",
      "9",
      "--max-agents",
      "7",
      "--max-stored-bytes",
      "1000000",
      "--json",
    );
    expect(JSON.parse(changed.stdout)).toMatchObject({
      limits: { maxQueued: null, maxInflight: 2, maxSessions: 9, maxAgents: 7, maxStoredBytes: 1_000_000 },
      storedBytes: 0,
    });
    expect((await rota("tenants", "show", made.id)).stdout).toMatch(/\nstored bytes +0 of 1000000\n/);
    expect((await rota("tenants", "disable", made.id)).stdout).toBe(`${made.id} disabled\n`);
    expect((await rota("tenants")).stdout).toMatch(/ acme +disabled /);
    expect((await rota("tenants", "enable", made.id)).stdout).toBe(`${made.id} enabled\n`);
    expect((await rota("tenants", "show", made.id)).stdout).toMatch(
      /^tenant +ten_.*\nname +acme\nstate +enabled\n/,
    );

    const lost = await rota("keys", "create", "--role", "operator", "--name", "it", "--tenant", "ten_x");
    expect([lost.code, lost.stderr]).toEqual([
      3,
      "error: `tenantId`: tenant not found: write the id of an existing tenant (--tenant)\n",
    ]);
    const theirs = await rota("keys", "create", "--role", "operator", "--name", "it", "--tenant", made.id);
    const asTheirs = { environment: { ROTA_URL: server.url, ROTA_KEY: theirs.stdout.trim() } };
    expect((await run(["submit", "--message", "hi", "--wait"], asTheirs)).stdout).toBe("hi\n");
    expect(JSON.parse((await rota("tasks", "--json")).stdout).count).toBe(0);
    const forbidden = await run(["tenants"], asTheirs);
    expect([forbidden.code, forbidden.stderr]).toEqual([
      2,
      "error: the role `operator` may not do this: use a key with the role `admin`\n",
    ]);
    const owner = ["--role", "tenant-admin", "--name", "owner", "--tenant", made.id];
    const owners = await rota("keys", "create", ...owner);
    const asOwner = { environment: { ROTA_URL: server.url, ROTA_KEY: owners.stdout.trim() } };
    expect((await run(["keys"], asOwner)).stdout).toMatch(/ tenant-admin +owner /);
    expect((await run(["tenants", "show", made.id], asOwner)).stdout).toMatch(/^tenant +ten_/);
    const other = await run(["tenants", "show", "default"], asOwner);
    expect([other.code, other.stderr]).toEqual([
      3,
      'error: tenant not found: "rota tenants" lists what there is\n',
    ]);
    expect((await rota("tenants", "delete", made.id)).stdout).toBe(`${made.id} deleted\n`);
    await eventually(
      async () => (await run(["tasks"], asTheirs)).code === 2,
      "the key to go with its tenant",
    );
  });
});

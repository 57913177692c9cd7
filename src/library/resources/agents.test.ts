import { describe, expect, test } from "vitest";
import { serve } from "../../../test/support/http-server.ts";
import { openTestRota, type TestRotaParams } from "../../../test/support/rota.ts";
import { asSharedStorage, away, openMemory } from "../../../test/support/storages.ts";
import type { AgentChanges, AgentInput, AgentList } from "../../interface/agents.ts";
import type { Rota } from "../../interface/rota.ts";
import type { Storage } from "../../storage/storage.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";
import { sealHeaders } from "../registries/agent-secrets.ts";
import { SecretBox } from "../registries/secret-box.ts";

/** A public address: no name has to be resolved. */
const URL_OF_USER = "https://93.184.216.34/run";
const HTTP = { type: "http", url: URL_OF_USER } as const;
const MODEL = { type: "openai", baseUrl: "https://93.184.216.34/v1", model: "m" } as const;

async function started(params: TestRotaParams = {}) {
  const opened = await openTestRota(params);
  await opened.rota.start();
  return opened;
}

describe("the catalogue", () => {
  test("has `index` from the beginning", async () => {
    const { rota } = await started();
    expect(await rota.agents.list()).toEqual({
      agents: [{ id: "index", source: "built-in" }],
      count: 1,
      nextCursor: null,
    });
    expect(await rota.agents.get("index")).toEqual({ id: "index", source: "built-in" });
  });

  test("is named once in a warning about another agent, `index` too when it is stored", async () => {
    const { rota } = await started();
    await rota.agents.update("index", { maxInflight: 3 });
    await rota.agents.create({ id: "research" });
    const { warnings } = await rota.tasks.submit({ agentId: "elsewhere", payload: 1 });
    expect(warnings).toEqual([expect.stringMatching(/known agents: index, research$/)]);
  });

  test("takes agents in, changes them and forgets them", async () => {
    const { rota } = await started();
    const input = {
      id: "research",
      executor: HTTP,
      lane: "team",
      maxInflight: 2,
      maxQueued: 5,
      contextWindow: 200_000,
    };
    expect(await rota.agents.create(input)).toEqual({ ...input, source: "stored" });
    expect(await rota.agents.get("research")).toEqual({ ...input, source: "stored" });
    expect(await rota.agents.create({ id: "a/b:c@d" })).toEqual({ id: "a/b:c@d", source: "stored" });
    expect((await rota.agents.list()).agents.map(({ id }) => id)).toEqual(["a/b:c@d", "index", "research"]);

    expect(await rota.agents.update("research", { maxInflight: 3, lane: null })).toEqual({
      id: "research",
      executor: HTTP,
      maxInflight: 3,
      maxQueued: 5,
      contextWindow: 200_000,
      source: "stored",
    });
    expect(await rota.agents.update("research", {})).toMatchObject({ maxInflight: 3 });
    expect(
      await rota.agents.update("research", {
        executor: null,
        maxInflight: null,
        maxQueued: null,
        contextWindow: null,
      }),
    ).toEqual({
      id: "research",
      source: "stored",
    });
    expect(await rota.agents.delete("research")).toEqual({ deleted: true });
    await expect(rota.agents.get("research")).rejects.toMatchObject({
      code: "not_found",
      message: "agent not found",
    });
  });

  test("shows those of the configuration and of the program, and changes neither", async () => {
    const { rota } = await started({
      options: { agents: { configured: { executor: HTTP, lane: "team", maxQueued: 3 } } },
    });
    rota.agent("programmed", { maxInflight: 2 }, () => 1);
    expect((await rota.agents.list()).agents).toEqual([
      { id: "configured", executor: HTTP, lane: "team", maxQueued: 3, source: "config" },
      { id: "index", source: "built-in" },
      { id: "programmed", maxInflight: 2, source: "config" },
    ]);
    for (const id of ["configured", "programmed"]) {
      await expect(rota.agents.create({ id })).rejects.toMatchObject({
        code: "conflict",
        message: `the agent "${id}" is in the configuration: change it there`,
      });
      const sentence = `the agent "${id}" is set by the configuration: change it there`;
      await expect(rota.agents.update(id, {})).rejects.toMatchObject({ code: "conflict", message: sentence });
      await expect(rota.agents.delete(id)).rejects.toMatchObject({ code: "conflict", message: sentence });
    }
  });

  test("`index` can get an executor, and is as before once that is deleted", async () => {
    const { rota } = await started();
    await expect(rota.agents.create({ id: "index" })).rejects.toMatchObject({ code: "conflict" });
    await expect(rota.agents.delete("index")).rejects.toMatchObject({
      code: "conflict",
      message: 'the agent "index" is built in and cannot be deleted',
    });
    expect(await rota.agents.update("index", { lane: "team" })).toEqual({
      id: "index",
      lane: "team",
      source: "stored",
    });
    const { taskId } = await rota.tasks.submit({ payload: "x" });
    expect(await rota.tasks.wait(taskId)).toMatchObject({ lane: "team", result: "x" });
    await rota.agents.delete("index");
    expect(await rota.agents.get("index")).toEqual({ id: "index", source: "built-in" });
  });

  test("comes in pages, by id", async () => {
    const { rota } = await started();
    for (const id of ["b c", "a", "z/z", "d"]) await rota.agents.create({ id });
    const seen: string[][] = [];
    let cursor: string | null = null;
    do {
      const page: AgentList = await rota.agents.list({ limit: 2, ...(cursor === null ? {} : { cursor }) });
      expect(page.count).toBe(page.agents.length);
      seen.push(page.agents.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(seen).toEqual([["a", "b c"], ["d", "index"], ["z/z"]]);
  });

  test("is not read anew when an agent is made: only what changed is", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const read: number[] = [];
    const changes = storage.agents.changes.bind(storage.agents);
    storage.agents.changes = async (params) => {
      const answer = await changes(params);
      read.push(answer.agents.length);
      return answer;
    };
    const { rota } = await started({ clock, storage });
    for (let n = 0; n < 20; n += 1) await rota.agents.create({ id: `agent-${n}` });
    read.length = 0;
    await rota.agents.create({ id: "one-more" });
    await rota.agents.update("agent-3", { lane: "team" });
    expect(Math.max(...read)).toBe(1);
    expect((await rota.agents.list()).count).toBe(22);
  });

  test("refuses an id that is taken, and knows none that was never given", async () => {
    const { rota } = await started();
    await rota.agents.create({ id: "a" });
    await expect(rota.agents.create({ id: "a" })).rejects.toMatchObject({
      code: "conflict",
      message:
        'the agent "a" is stored already: change it with PATCH /v1/agents/a, or "rota agents update a"',
    });
    for (const id of ["b", "two words", "", "__proto__", "x".repeat(200)]) {
      await expect(rota.agents.get(id)).rejects.toMatchObject({ code: "not_found" });
      await expect(rota.agents.update(id, {})).rejects.toMatchObject({ code: "not_found" });
      await expect(rota.agents.delete(id)).rejects.toMatchObject({ code: "not_found" });
    }
  });

  test("of two that are made at once under one id there is one", async () => {
    const { rota } = await started();
    const made = await Promise.allSettled([
      rota.agents.create({ id: "a", maxInflight: 1 }),
      rota.agents.create({ id: "a", maxInflight: 2 }),
    ]);
    expect(made.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(await rota.agents.get("a")).toMatchObject({ maxInflight: 1 });
  });

  test("of changes at once none is lost", async () => {
    const { rota } = await started();
    await rota.agents.create({ id: "a" });
    await Promise.all([
      rota.agents.update("a", { maxInflight: 1 }),
      rota.agents.update("a", { maxQueued: 2 }),
      rota.agents.update("a", { lane: "team" }),
    ]);
    expect(await rota.agents.get("a")).toMatchObject({ maxInflight: 1, maxQueued: 2, lane: "team" });
  });

  test("shows masks instead of secrets, and refuses a mask as a secret", async () => {
    const { rota } = await started();
    const executor = {
      ...HTTP,
      url: `${URL_OF_USER}?key=secret`,
      headers: { authorization: "Bearer secret" },
    };
    const shown = { type: "http", url: `${URL_OF_USER}?…`, headers: { authorization: "…" } };
    expect((await rota.agents.create({ id: "a", executor })).executor).toEqual(shown);
    expect((await rota.agents.get("a")).executor).toEqual(shown);
    expect(JSON.stringify(await rota.agents.list())).not.toContain("secret");
    await expect(rota.agents.update("a", { executor: shown as never })).rejects.toMatchObject({
      code: "invalid_field",
      details: { field: "executor.url" },
    });
    await expect(
      rota.agents.update("a", { executor: { ...HTTP, headers: { authorization: "…" } } }),
    ).rejects.toMatchObject({ code: "invalid_field", details: { field: "executor.headers.authorization" } });
  });

  test("finds a mask in place of a secret at any depth", async () => {
    const { rota } = await started();
    const request = { metadata: { tools: [{ name: "search" }, { name: "mail", password: "secret" }] } };
    const executor = { type: "openai", baseUrl: URL_OF_USER, model: "m", request } as const;
    const { executor: shown } = await rota.agents.create({ id: "a", executor });
    expect(JSON.stringify(shown)).not.toContain("secret");
    await expect(rota.agents.update("a", { executor: shown as never })).rejects.toMatchObject({
      code: "invalid_field",
      message: expect.stringContaining("shows where a secret was: write the secret itself"),
      details: { field: "executor.request.metadata.tools.1.password" },
    });
  });
});

function nested(levels: number): unknown {
  return levels === 0 ? 1 : [nested(levels - 1)];
}

describe("what cannot be is refused, and nothing is stored:", () => {
  const REFUSED: [object, string, RegExp][] = [
    [{ lane: " " }, "lane", /^`lane` must be the name of a lane/],
    [{ lane: 5 }, "lane", /^`lane` must be a string/],
    [{ maxInflight: 0 }, "maxInflight", /^`maxInflight` must be an integer from 1 to 10000000, not 0$/],
    [{ contextWindow: 0 }, "contextWindow", /^`contextWindow` must be an integer from 1 to 10000000/],
    [{ maxQueued: 10_000_001 }, "maxQueued", /^`maxQueued` must be an integer from 1 to 10000000/],
    [{ maxInFlight: 5 }, "maxInFlight", /did you mean `maxInflight`\?$/],
    [{ executor: "echo" }, "executor", /^`executor` must be/],
    [{ executor: {} }, "executor.type", /^`executor.type` must be/],
    [{ executor: { type: "htp" } }, "executor.type", /did you mean `http`\?$/],
    [{ executor: { type: "http" } }, "executor.url", /^`executor.url` must be an http or https URL/],
    [{ executor: { ...MODEL, request: { a: nested(499) } } }, "executor", /than 500 levels: flatten it$/],
    [{ executor: { ...HTTP, urll: 1 } }, "executor.urll", /did you mean `executor.url`\?$/],
    [{ executor: { ...HTTP, headers: { a: 5 } } }, "executor.headers", /^`executor.headers` must/],
    [{ executor: { type: "command", command: ["rm"] } }, "executor.type", /must not be command/],
    [
      { executor: { ...MODEL, apiKeyEnv: "HOME" } },
      "executor.apiKeyEnv",
      /is allowed only in the configuration file/,
    ],
    [
      { executor: { ...MODEL, baseUrl: "http://10.0.0.1/" } },
      "executor.baseUrl",
      /must not lead to 10\.0\.0\.1/,
    ],
    [{ executor: () => 1 }, "executor", /use `rota.agent\(\)` for a handler$/],
    [
      { executor: { type: "http", url: "http://127.0.0.1:9/" } },
      "executor.url",
      /^`executor.url` must not lead to 127\.0\.0\.1, a loopback address/,
    ],
    [
      { executor: { type: "http", url: "http://169.254.169.254/" } },
      "executor.url",
      /^`executor.url` must not lead/,
    ],
    [
      { executor: { type: "http", url: "http://localhost/" } },
      "executor.url",
      /^`executor.url` must not lead/,
    ],
    [{ executor: { type: "http", url: "http://u:p@93.184.216.34/" } }, "executor.url", /no user or password/],
  ];

  test.each(REFUSED)("%j", async (fields, field, sentence) => {
    const { rota, storage } = await started();
    const refusal = { code: "invalid_field", message: expect.stringMatching(sentence), details: { field } };
    await expect(rota.agents.create({ id: "a", ...fields } as AgentInput)).rejects.toMatchObject(refusal);
    expect(await storage.agents.list()).toEqual([]);
    await rota.agents.create({ id: "a", maxInflight: 7 });
    await expect(rota.agents.update("a", fields as AgentChanges)).rejects.toMatchObject(refusal);
    expect(await rota.agents.get("a")).toEqual({ id: "a", maxInflight: 7, source: "stored" });
  });

  test.each([undefined, null, "two\nlines", "", 5, "x".repeat(129)])("the id %s", async (id) => {
    const { rota } = await started();
    await expect(rota.agents.create({ id } as never)).rejects.toMatchObject({
      code: "invalid_field",
      details: { field: "id" },
    });
  });

  test.each([null, 5, "a", []])("%j in place of an agent", async (input) => {
    const { rota } = await started();
    await expect(rota.agents.create(input as never)).rejects.toMatchObject({ code: "invalid_field" });
    await expect(rota.agents.update("index", input as never)).rejects.toMatchObject({
      code: "invalid_field",
    });
  });

  test("a definition of an agent that is too large", async () => {
    const { rota } = await started();
    const executor = { ...MODEL, system: "x".repeat(70_000) };
    await expect(rota.agents.create({ id: "a", executor })).rejects.toMatchObject({
      code: "invalid_field",
      message: "an agent may take 65536 bytes of JSON at most",
    });
  });

  test("a page that does not exist", async () => {
    const { rota } = await started();
    await expect(rota.agents.list({ limit: 0 })).rejects.toMatchObject({ code: "invalid_field" });
    await expect(rota.agents.list({ cursor: "not a cursor" })).rejects.toMatchObject({
      code: "invalid_field",
      message: "`cursor` must be the `nextCursor` of the page before",
    });
  });

  test("more agents than a catalogue can hold", async () => {
    const { rota, storage } = await started();
    for (let n = 0; n < 10_000; n++) {
      await storage.agents.create({ tenant: "default", agent: `a${n}`, maxInflight: null, definition: {} });
    }
    await expect(rota.agents.create({ id: "one-more" })).rejects.toMatchObject({ code: "conflict" });
  });
});

describe("a stored agent", () => {
  test("may name a lane that does not exist: `main` stands for it until it is created", async () => {
    const { rota } = await started();
    expect(await rota.agents.create({ id: "a", lane: "crawl" })).toMatchObject({ lane: "crawl" });
    const submit = async () => (await rota.tasks.submit({ agentId: "a", payload: 1 })).taskId;
    expect(await rota.tasks.get(await submit())).toMatchObject({ lane: "main" });
    await rota.lanes.put("crawl", { concurrency: 1 });
    expect(await rota.tasks.get(await submit())).toMatchObject({ lane: "crawl" });
    expect(await rota.agents.update("a", { lane: "crwal" })).toMatchObject({ lane: "crwal" });
  });

  test("has its lane, its limits and its executor from the moment it is made", async () => {
    const { rota } = await started({ options: { executors: { custom: () => new Promise(() => {}) } } });
    await rota.agents.create({ id: "a", lane: "team", maxInflight: 1, maxQueued: 2 });
    const [first, second] = [
      await rota.tasks.submit({ agentId: "a", payload: 1 }),
      await rota.tasks.submit({ agentId: "a", payload: 2 }),
    ];
    await settle();
    expect(await rota.tasks.get(first.taskId)).toMatchObject({ lane: "team", state: "running" });
    expect(await rota.tasks.get(second.taskId)).toMatchObject({ lane: "team", state: "queued" });
    await rota.tasks.submit({ agentId: "a", payload: 3 });
    await expect(rota.tasks.submit({ agentId: "a", payload: 4 })).rejects.toMatchObject({
      code: "queue_full",
      details: { maxPerAgent: 2 },
    });
    await rota.agents.update("a", { maxInflight: 2 });
    await settle();
    expect((await rota.tasks.get(second.taskId)).state).toBe("running");
    await rota.agents.delete("a");
    await settle();
    expect(await rota.tasks.counts()).toMatchObject({ counts: { running: 3 } });
  });

  test("outlives the process", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const before = await started({ clock, storage: { ...storage, close: async () => {} } });
    await before.rota.agents.create({ id: "a", executor: { type: "echo" }, lane: "team" });
    await before.rota.stop();
    const { rota } = await started({ clock, storage });
    expect(await rota.agents.get("a")).toMatchObject({ lane: "team", source: "stored" });
    const { taskId } = await rota.tasks.submit({ agentId: "a", payload: "x" });
    expect(await rota.tasks.wait(taskId)).toMatchObject({ lane: "team", result: "x" });
  });

  test("is replaced by the configuration, and is back with its limit once the configuration no longer has it", async () => {
    const running = new Set<Latch>();
    const { rota, storage } = await started({
      options: {
        executors: {
          custom: async () => {
            const latch = new Latch();
            running.add(latch);
            await latch.opened;
          },
        },
      },
    });
    await rota.agents.create({ id: "a", maxInflight: 1, lane: "team" });
    await Promise.all([1, 2, 3, 4, 5].map((payload) => rota.tasks.submit({ agentId: "a", payload })));
    await settle();
    expect(running.size).toBe(1);
    await rota.reload({ agents: { a: { maxInflight: 3 } } });
    await settle();
    expect(running.size).toBe(3);
    expect(await rota.agents.get("a")).toEqual({ id: "a", maxInflight: 3, source: "config" });
    expect((await rota.agents.list()).agents.filter(({ id }) => id === "a")).toHaveLength(1);
    expect((await storage.agents.list())[0]?.maxInflight).toBe(3);
    await rota.reload({ agents: {} });
    expect(await rota.agents.get("a")).toEqual({ id: "a", maxInflight: 1, lane: "team", source: "stored" });
    for (const latch of running) latch.open();
    running.clear();
    await settle();
    expect(running.size).toBe(1);
  });

  test("that cannot be understood fails its tasks with the reason, and nothing else", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    await storage.agents.create({
      tenant: "default",
      agent: "odd",
      maxInflight: null,
      definition: { executor: { type: "from-the-future" } },
    });
    const { rota, log } = await started({ clock, storage });
    const { taskId } = await rota.tasks.submit({ agentId: "odd", payload: 1 });
    expect(await rota.tasks.wait(taskId)).toMatchObject({
      state: "failed",
      error: expect.stringMatching(
        /^the agent "odd" is stored in a way that cannot be used: `executor.type` must/,
      ),
    });
    expect(log.messages("warn")).toEqual([
      expect.stringMatching(/^the agent "odd"/),
      "an attempt failed, and with it the task",
    ]);
    await rota.agents.update("odd", { executor: { type: "echo" } });
    const mended = await rota.tasks.submit({ agentId: "odd", payload: 1 });
    expect((await rota.tasks.wait(mended.taskId)).state).toBe("done");
  });

  test("has its headers encrypted where there is a key, and is used with them", async () => {
    const headers: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      headers.push(request.headers.authorization);
      response.end("hello");
    });
    const executor = { type: "http", url, headers: { Authorization: "Bearer planted" } } as const;
    const environment = { ROTA_SECRET_KEY: Buffer.alloc(32, 1).toString("base64") };
    const options = { outbound: { allow: ["127.0.0.1"] } };
    const { rota, storage } = await started({ options, environment });
    await rota.agents.create({ id: "a", executor, lane: "team" });
    await rota.agents.update("a", { maxQueued: 5 });
    const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 1 });
    expect((await rota.tasks.wait(taskId)).result).toBe("hello");
    expect(headers).toEqual(["Bearer planted"]);
    const stored = await storage.agents.changes({ since: null, limit: 10 });
    expect(JSON.stringify(stored)).not.toContain("planted");
    expect(await rota.agents.get("a")).toMatchObject({ executor: { headers: { Authorization: "…" } } });
  });

  test("cannot be used, but not lost either, by a node that does not have the key of its headers", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const box = new SecretBox(Buffer.alloc(32, 2).toString("base64"));
    const name = { tenant: "default", agent: "a" };
    const executor = {
      type: "http",
      url: "https://example.com",
      headers: { Authorization: "Bearer planted" },
    };
    const definition = sealHeaders({ executor, lane: "team" }, name, box);
    await storage.agents.create({ ...name, maxInflight: null, definition });
    const environment = { ROTA_SECRET_KEY: Buffer.alloc(32, 1).toString("base64") };
    const { rota, log } = await started({ clock, storage, environment });
    expect(log.messages("warn")).toEqual([
      'the headers of the agent "a" were encrypted with a key that this node does not have: give it that ROTA_SECRET_KEY',
    ]);
    const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 1 });
    await clock.advance(5_000);
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "queued", lane: "team", attempts: [] });
    await expect(rota.agents.update("a", { maxQueued: 5 })).rejects.toMatchObject({ code: "conflict" });
    await rota.agents.update("a", { executor: { type: "echo" } });
    await clock.advance(5_000);
    expect((await rota.tasks.wait(taskId)).state).toBe("done");
  });

  test("calls what the configuration allows now, whatever it allowed when the agent was made", async () => {
    const url = await serve((_, response) => response.end("hello"));
    const { rota } = await started({ options: { webhooks: { allow: ["127.0.0.1"] } } });
    await rota.agents.create({ id: "a", executor: { type: "http", url } });
    const ended = async () => {
      const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 1 });
      await until(async () => /done|failed/.test((await rota.tasks.get(taskId)).state), "the task to end");
      return rota.tasks.get(taskId);
    };
    expect((await ended()).result).toBe("hello");
    expect((await rota.reload({ webhooks: { allow: [] } })).changed).toEqual(["webhooks.allow"]);
    expect((await ended()).error).toMatch(/must not lead to 127\.0\.0\.1/);
    await expect(rota.agents.update("a", { executor: { type: "http", url } })).rejects.toThrow(
      "must not lead",
    );
    await rota.reload({ webhooks: { allow: ["127.0.0.0/8"] } });
    expect((await ended()).result).toBe("hello");
  });

  test("is created although the response of the read after it was lost", async () => {
    let broken = false;
    const { rota } = await started({
      meddler: {
        before: ({ operation }) => {
          if (broken && operation === "agents.changes") throw away();
        },
        after: ({ operation }) => {
          if (operation === "agents.create") broken = true;
        },
      },
    });
    expect(await rota.agents.create({ id: "a", executor: { type: "echo" } })).toMatchObject({ id: "a" });
    broken = false;
    const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 5 });
    expect((await rota.tasks.wait(taskId)).result).toBe(5);
  });
});

describe("on several nodes", () => {
  /** Two nodes. The second runs tasks; it gets the signals of the first only if `signals`. */
  async function twoNodes({
    signals = true,
    meddler = {},
  }: { signals?: boolean } & Pick<TestRotaParams, "meddler"> = {}) {
    const clock = new ManualClock();
    const storage = asSharedStorage(await openMemory(clock));
    const deaf: Storage = { ...storage, subscribe: () => () => {} };
    const maker = await openTestRota({ clock, storage });
    const runner = await started({ clock, storage: signals ? storage : deaf, meddler });
    return { clock, storage, maker: maker.rota, runner: runner.rota, log: runner.log };
  }

  async function resultOf(rota: Rota, agentId: string) {
    const { taskId } = await rota.tasks.submit({ agentId, payload: "x" });
    return rota.tasks.wait(taskId);
  }

  test("one that another node made is known at once", async () => {
    const { maker, runner, clock } = await twoNodes();
    await maker.agents.create({ id: "a", executor: { type: "echo" }, maxQueued: 1 });
    expect(await runner.agents.get("a")).toMatchObject({ source: "stored" });
    expect(await resultOf(maker, "a")).toMatchObject({ state: "done", result: "x" });
    await maker.agents.delete("a");
    const { taskId, warnings } = await maker.tasks.submit({ agentId: "a", payload: "x" });
    expect(warnings).toEqual([expect.stringMatching(/^agent "a" has no executor/)]);
    await clock.advance(60_000);
    expect(await maker.tasks.get(taskId)).toMatchObject({ state: "queued" });
    await clock.advance(5_000);
    expect(await maker.tasks.get(taskId)).toMatchObject({
      state: "failed",
      error: expect.stringMatching(/^no executor for agent "a": add the agent/),
      attempts: [],
    });
  });

  test("a task for an agent that this node does not know fails only after the storage was read", async () => {
    const { maker, runner, clock } = await twoNodes({ signals: false });
    await maker.agents.create({ id: "a", executor: { type: "echo" } });
    const { taskId } = await runner.tasks.submit({ agentId: "a", payload: "x" });
    await clock.advance(0);
    expect(await runner.tasks.get(taskId)).toMatchObject({ state: "done", result: "x" });
  });

  test("a storage that is away for a moment fails no task", async () => {
    let failures = 0;
    const { maker, runner, clock } = await twoNodes({
      signals: false,
      meddler: {
        before: ({ operation }) => {
          if (operation === "agents.changes" && failures-- > 0) throw away();
        },
      },
    });
    await maker.agents.create({ id: "a", executor: { type: "echo" } });
    await settle();
    failures = 3;
    const { taskId } = await runner.tasks.submit({ agentId: "a", payload: "x" });
    await clock.advance(1_000);
    expect(await runner.tasks.get(taskId)).toMatchObject({ state: "done" });
  });

  test("what another node changed is seen after half a minute although no signal came", async () => {
    const { maker, runner, clock } = await twoNodes({ signals: false });
    await maker.agents.create({ id: "a", lane: "team" });
    const runAt = new Date(clock.now() + 3_600_000);
    const lane = async () => {
      const { taskId } = await runner.tasks.submit({ agentId: "a", payload: 1, runAt: runAt.toISOString() });
      return (await runner.tasks.get(taskId)).lane;
    };
    expect(await lane()).toBe("tasks");
    await clock.advance(30_000);
    expect(await lane()).toBe("team");
  });

  test("the bound that the configuration of a node sets is not lost when another changes the stored agent", async () => {
    const { maker, runner, storage } = await twoNodes();
    await maker.agents.create({ id: "a", maxInflight: 9 });
    const bound = async () => (await storage.agents.list())[0]?.maxInflight;
    await runner.reload({ agents: { a: { maxInflight: 2 } } });
    expect(await bound()).toBe(2);
    await maker.agents.update("a", { maxInflight: 5 });
    await settle();
    expect(await bound()).toBe(2);
    expect(await maker.agents.get("a")).toMatchObject({ maxInflight: 5, source: "stored" });
    await runner.reload({ agents: {} });
    expect(await bound()).toBe(5);
  });

  test("two that say something of `index` for the first time do not fail each other", async () => {
    const { maker, runner } = await twoNodes();
    await Promise.all([
      maker.agents.update("index", { maxInflight: 3 }),
      runner.agents.update("index", { maxInflight: 3 }),
    ]);
    expect(await maker.agents.get("index")).toEqual({ id: "index", maxInflight: 3, source: "stored" });
  });
});

describe("a bound that an earlier start set", () => {
  async function boundsAfter(shared: boolean): Promise<string[]> {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const kept = { ...storage, close: async () => {} };
    const agents = { gone: { maxInflight: 1 }, stays: { maxInflight: 1 }, index: { maxInflight: 1 } };
    const before = await started({ clock, storage: kept });
    await before.rota.agents.create({ id: "stored", maxInflight: 5 });
    await before.rota.agents.create({ id: "free" });
    const both = { stored: { maxInflight: 1 }, free: { maxInflight: 1 } };
    await before.rota.reload({ agents: { ...agents, ...both } });
    await before.rota.stop();
    await started({
      clock,
      storage: shared ? asSharedStorage(storage) : kept,
      options: { agents: { stays: { maxInflight: 2 } } },
    });
    const bounded = (await storage.agents.bounded()).map(({ agent }) => agent);
    const listed = (await storage.agents.list()).map(({ agent, maxInflight }) => `${agent} ${maxInflight}`);
    return [...bounded, ...listed];
  }

  test("goes when its agent is not configured any more, or becomes what is stored", async () => {
    expect(await boundsAfter(false)).toEqual(["stays", "free null", "stored 5"]);
  });

  test("stays where another process may have its agent", async () => {
    expect(await boundsAfter(true)).toEqual(["gone", "index", "stays", "free 1", "stored 1"]);
  });
});

test("an agent that the program makes known after a stop is not stored", async () => {
  const { rota, log } = await started();
  await rota.stop();
  rota.agent("late", { maxInflight: 1 }, () => 1);
  await settle();
  expect(log.messages()).toEqual([]);
});

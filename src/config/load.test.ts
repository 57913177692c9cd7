import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { RotaError } from "../model/errors.ts";
import { describeConfig } from "./described-config.ts";
import { type LoadConfigParams, loadConfig } from "./load.ts";
import { OPTIONS } from "./options.ts";

/** A folder that holds a configuration file, if one is given. */
function folderWith(file?: unknown): string {
  const folder = mkdtempSync(join(tmpdir(), "rota-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  if (file !== undefined) {
    writeFileSync(join(folder, "rota.config.json"), typeof file === "string" ? file : JSON.stringify(file));
  }
  return folder;
}

function load({ file, ...params }: Omit<LoadConfigParams, "file"> & { file?: unknown } = {}) {
  return loadConfig({ folder: folderWith(file), environment: {}, ...params });
}

function faultsOf(params: Parameters<typeof load>[0]): string[] {
  try {
    load(params);
  } catch (error) {
    if (error instanceof RotaError) return (error.details?.["faults"] as string[]) ?? [error.message];
  }
  throw new Error("no fault was found");
}

test("without a file, variables and flags everything has its default", () => {
  expect(load().config).toEqual({
    server: {
      host: "127.0.0.1",
      port: 7682,
      basePath: "",
      trustProxy: false,
      cors: { origins: [] },
      rateLimit: {
        perSecond: 100,
        burst: 200,
        maxExpensive: 4,
        ofTenant: { perSecond: 1_000, burst: 2_000, maxExpensive: 8 },
      },
    },
    ui: { enabled: true },
    storage: "sqlite:rota.db",
    storageWaitSec: 60,
    scheduler: {
      enabled: true,
      strategy: "fair-fifo",
      maxQueueSize: 1_000,
      maxPerAgent: 100,
      maxInflight: 20,
      maxPerAgentInflight: 10,
      workerCount: 4,
      agingSec: 0,
      noExecutorSec: 60,
      maxLost: 5,
      maxRunningBytes: 268_435_456,
    },
    lanes: {
      main: { concurrency: 30 },
      subagent: { concurrency: 50 },
      team: { concurrency: 100 },
      cron: { concurrency: 30 },
    },
    schedules: { runRetentionDays: 90 },
    sessions: { mode: "queue", cap: 10, drop: "old", debounceMs: 800, maxConcurrent: 1, steerMs: 5_000 },
    retry: { maxRetries: 3, backoffMs: 1_000, backoffMultiplier: 2, maxBackoffMs: 60_000, jitter: 0 },
    timeouts: { defaultMs: 120_000, maxMs: 600_000 },
    tenants: { maxLaneShare: 0.8, maxFiresPerSec: 200 },
    bounds: {},
    executors: {},
    agents: {},
    log: { level: "info" },
    outbound: { allow: [], deny: [] },
    webhooks: { allow: [], secretEnv: "ROTA_WEBHOOK_SECRET" },
    redact: [],
    audit: { retentionDays: 90 },
    shutdownGraceSec: 30,
  });
});

test("names to redact are a list in a file, and commas do in a variable", () => {
  expect(load({ file: { redact: ["password"] } }).config.redact).toEqual(["password"]);
  expect(load({ environment: { ROTA_REDACT: "password, totp" } }).config.redact).toEqual([
    "password",
    "totp",
  ]);
  expect(faultsOf({ file: { redact: [""] } })).toEqual([
    "`redact.0` must be the name of a field, of 1 to 128 characters on one line (rota.config.json)",
  ]);
});

test("a number of `scheduler` that is 0 has its default, wherever it is written", () => {
  const zeros = {
    maxQueueSize: 0,
    maxPerAgent: 0,
    maxPerAgentInflight: 0,
    workerCount: 0,
    resultTTLSec: 0,
  };
  const loaded = load({
    file: { scheduler: { ...zeros, maxInflight: 5 } },
    environment: { ROTA_SCHEDULER_MAX_INFLIGHT: "0" },
    flags: { "scheduler.maxPerAgent": "0" },
  });
  expect(loaded.config.scheduler).toEqual(load().config.scheduler);
  const described = describeConfig(loaded).filter(({ option }) => option.startsWith("scheduler."));
  expect(described.map(({ from }) => from)).toEqual(described.map(() => "default"));
  // Of these, 0 is a value: at once, and never.
  const meant = load({ file: { scheduler: { noExecutorSec: 0, agingSec: 0 } } });
  expect(meant.config.scheduler).toMatchObject({ noExecutorSec: 0, agingSec: 0 });
});

test("shows a text that should be a number as a text", () => {
  expect(faultsOf({ file: { server: { port: "8000" } } })).toEqual([
    '`server.port` must be an integer from 0 to 65535, not "8000" (rota.config.json)',
  ]);
});

test("0 means nothing else in `scheduler`, and itself elsewhere", () => {
  expect(faultsOf({ file: { scheduler: { enabled: 0 } } })).toEqual([
    "`scheduler.enabled` must be true or false, not 0 (rota.config.json)",
  ]);
  expect(load({ file: { retry: { maxRetries: 0 } } }).config.retry.maxRetries).toBe(0);
});

test("a variable counts more than the file, and a flag more than both", () => {
  const { config } = load({
    file: { server: { port: 1, host: "::1" }, storage: "sqlite:file.db", scheduler: { maxInflight: 2 } },
    environment: { ROTA_SERVER_PORT: "3", ROTA_STORAGE: "sqlite:variable.db" },
    flags: { "server.port": "4" },
  });
  expect(config.server).toMatchObject({ host: "::1", port: 4 });
  expect(config.storage).toBe("sqlite:variable.db");
  expect(config.scheduler.maxInflight).toBe(2);
});

test("each option has one variable of its own", () => {
  const variables = OPTIONS.map(({ variable }) => variable);
  expect(new Set(variables).size).toBe(variables.length);
  expect(variables).toContain("ROTA_SCHEDULER_MAX_INFLIGHT");
  expect(variables).toContain("ROTA_SCHEDULER_RESULT_TTL_SEC");
  expect(variables).toContain("ROTA_SHUTDOWN_GRACE_SEC");
});

test("each option can be set by its variable, in the form of its default", () => {
  for (const { path, variable, kind, defaultValue } of OPTIONS) {
    if (defaultValue === undefined) continue;
    const text = kind === "text" ? String(defaultValue) : JSON.stringify(defaultValue);
    const { config } = load({ environment: { [variable]: text } });
    expect(config, path.join(".")).toEqual(load().config);
  }
});

test("variables set numbers, switches, lanes and JSON", () => {
  const { config } = load({
    file: { lanes: { "my-lane": 1 } },
    environment: {
      ROTA_SCHEDULER_ENABLED: "false",
      ROTA_RETRY_JITTER: "0.25",
      ROTA_LANE_MAIN: "7",
      ROTA_LANE_CRON: '{"concurrency":3,"total":9}',
      ROTA_LANE_MY_LANE: "2",
      ROTA_LANE_NEW_ONE: "5",
      ROTA_LANES_TEAM: "6",
      ROTA_LANES_OTHER: "8",
      ROTA_EXECUTORS_ACTION: '{"type":"http","url":"http://127.0.0.1:9/"}',
      ROTA_AGENTS: '{"research":{"lane":"main"}}',
      ROTA_STORAGE: "",
    },
  });
  expect(config.scheduler.enabled).toBe(false);
  expect(config.retry.jitter).toBe(0.25);
  expect(config.lanes).toMatchObject({
    main: { concurrency: 7 },
    cron: { concurrency: 3, total: 9 },
    "my-lane": { concurrency: 2 },
    new_one: { concurrency: 5 },
    team: { concurrency: 6 },
    other: { concurrency: 8 },
  });
  expect(config.executors).toEqual({ action: { type: "http", url: "http://127.0.0.1:9/" } });
  expect(config.agents).toEqual({ research: { lane: "main" } });
  expect(config.storage, "an empty variable is not set").toBe("sqlite:rota.db");
});

test("a process can leave a lane to others", () => {
  const { config } = load({ file: { lanes: { mine: { concurrency: 0, total: 1 } } } });
  expect(config.lanes["mine"]).toEqual({ concurrency: 0, total: 1 });
});

test("everything that is wrong is reported at once, with its place and where it was written", () => {
  const faults = faultsOf({
    file: { schedulr: {}, server: { port: "abc" }, agents: { research: { maxInflight: 0 } } },
    environment: { ROTA_SCHEDULER_WORKER_COUNT: "many" },
    flags: { storage: "mysql://user:secret@host/db" },
  });
  expect(faults.sort()).toEqual([
    "`agents.research.maxInflight` must be an integer from 1 to 10000000, not 0 (rota.config.json)",
    '`scheduler.workerCount` must be an integer from 1 to 10000000, not "many" (ROTA_SCHEDULER_WORKER_COUNT)',
    '`server.port` must be an integer from 0 to 65535, not "abc" (rota.config.json)',
    '`storage` must be "sqlite:rota.db", "sqlite::memory:" or "postgres://user:password@host:5432/database" (--storage)',
    "unknown option `schedulr`: did you mean `scheduler`? (rota.config.json)",
  ]);
});

test.each([
  [
    { server: { host: "http://0.0.0.0/" } },
    /^`server.host` must be an address of this machine, like "127\.0\.0\.1" or "0\.0\.0\.0", or its name, not "http/,
  ],
  [{ server: 3 }, /^`server` must be an object, not 3/],
  [
    { scheduler: { maxinflight: 3 } },
    /^unknown option `scheduler.maxinflight`: did you mean `scheduler.maxInflight`\?/,
  ],
  [{ lanes: { tasks: 3 } }, /^`lanes.tasks` is described by `scheduler.workerCount`/],
  [{ lanes: { mine: "x" } }, /^`lanes.mine` must be a number or an object with `concurrency`/],
  [{ lanes: { mine: { total: 3 } } }, /^`lanes.mine.concurrency` is missing/],
  [
    { lanes: { mine: { concurrency: 0, total: 0 } } },
    /^`lanes.mine.total` must be an integer from 1 to 10000000, not 0/,
  ],
  [{ lanes: { "two words": 1 } }, /^`lanes.two words`: the name of a lane is 1 to 128 of the characters/],
  [{ lanes: { "": 1 } }, /^`lanes.`: the name of a lane is/],
  [{ ["x".repeat(5_000)]: 1 }, /^unknown option `x{60}…`: known are server,/],
  [{ "two\nlines": 1 }, /^unknown option `two\\nlines`: known are server,/],
  [{ executors: { action: { type: "htp" } } }, /^`executors.action.type` must be echo.*, not "htp"/],
  [
    { executors: { action: "echo" } },
    /^`executors.action` must be an object whose `type` is echo.*, not "echo"/,
  ],
  [
    { executors: { actoin: { type: "echo" } } },
    /^unknown option `executors.actoin`: did you mean `executors.action`\?/,
  ],
  [
    { executors: { message: { type: "worker" } } },
    /^`executors.message.type` must not be worker: .* Write `agents.<id>.executor`: \{"type": "worker"\}/,
  ],
  [
    { executors: { message: { type: "http" } } },
    /^`executors.message.url` is missing: it must be an http or https URL/,
  ],
  [
    { executors: { message: { type: "http", url: "file:///x" } } },
    /^`executors.message.url` must be an http or https URL/,
  ],
  [
    { agents: { a: { executor: { type: "http", url: "http://user:secret@x/" } } } },
    /^`agents.a.executor.url` must have no user or password in it: write them as an `authorization` header/,
  ],
  [
    { agents: { "a\u202eb": {} } },
    /^`agents.a\u202eb`: the id of an agent is 1 to 128 characters of any script/,
  ],
  [{ agents: [] }, /^`agents` must be an object of agents, not an array/],
  [{ tenants: { maxLaneShare: 0 } }, /^`tenants.maxLaneShare` must be a number from 0.01 to 1, not 0/],
  [{ tenants: { maxLaneShare: 1.5 } }, /^`tenants.maxLaneShare` must be a number from 0.01 to 1, not 1.5/],
  [
    { tenants: { maxFiresPerSec: -1 } },
    /^`tenants.maxFiresPerSec` must be an integer from 0 to 1000000, not -1/,
  ],
  [{ bounds: { maxDepth: -1 } }, /^`bounds.maxDepth` must be an integer from 0 to 1000, not -1/],
  [{ bounds: { maxDeep: 1 } }, /did you mean `bounds.maxDepth`\?/],
  [{ tenants: { maxLaneshare: 1 } }, /did you mean `tenants.maxLaneShare`\?/],
  [{ scheduler: { maxQueueSizeTotal: -1 } }, /^`scheduler.maxQueueSizeTotal` must be an integer from 1 to/],
  [{ timeouts: { maxMs: 10 } }, /^`timeouts.maxMs` must be an integer of milliseconds from 1000 to/],
  [{ retry: { maxRetries: 101 } }, /^`retry.maxRetries` must be an integer from 0 to 100, not 101/],
  [{ shutdownGraceSec: null }, /^`shutdownGraceSec` must be a number of seconds from 0 to \d+, not null/],
])("the file %j has one fault", (file, sentence) => {
  const faults = faultsOf({ file });
  expect(faults).toHaveLength(1);
  expect(faults[0]).toMatch(sentence);
});

test("the fault of a storage that is no URL does not repeat its password", () => {
  expect(faultsOf({ file: { storage: "postgres://u:s3cret@h:99999/db" } })).toEqual([
    '`storage` must be "sqlite:rota.db", "sqlite::memory:" or "postgres://user:password@host:5432/database" (rota.config.json)',
  ]);
});

test.each(["http://user:secret@host/", "ftp://user:secret@host/", "http://user:secret@host:port/"])(
  "the fault of an executor's URL %s does not repeat its password",
  (url) => {
    expect(faultsOf({ file: { executors: { message: { type: "http", url } } } }).join()).not.toContain(
      "secret",
    );
  },
);

test.each([
  ["{", /^rota\.config\.json is not JSON: /],
  ["[]", /^rota\.config\.json must hold an object/],
  ['{"__proto__": 1}', /^unknown option `__proto__`/],
])("the text %s is refused as a file", (file, sentence) => {
  expect(faultsOf({ file })[0]).toMatch(sentence);
});

test("a file that begins with a byte order mark is read", () => {
  expect(load({ file: '\ufeff{"server":{"port":5}}' }).config.server.port).toBe(5);
});

test("a file that is named has to be there", () => {
  expect(() => loadConfig({ file: "/no/such/file.json", environment: {} })).toThrow(
    "cannot read the configuration /no/such/file.json: there is no such file",
  );
});

test.each([
  ["ROTA_SCHEDULER_MAX_INFLITE", "did you mean ROTA_SCHEDULER_MAX_INFLIGHT?"],
  ["ROTA_LOGLEVEL", "did you mean ROTA_LOG_LEVEL?"],
  ["ROTA_PROT", "did you mean ROTA_PORT?"],
  ["ROTA_DATABASE_URL", "did you mean ROTA_STORAGE?"],
  ["ROTA_API_KEY", "did you mean ROTA_KEY?"],
  ["ROTA_UNLIKE_ANYTHING_THERE_IS", "`rota config show` lists what can be configured"],
])("the variable %s, which is none of ours, is no fault but gets a hint", (variable, hint) => {
  const { hints } = load({ environment: { [variable]: "1" } });
  expect(hints).toEqual([`${variable} is not an option of Rota and changes nothing: ${hint}`]);
});

test("variables of commands, of other programs and those that the configuration names get no hint", () => {
  const executor = {
    type: "openai",
    baseUrl: "http://127.0.0.1:1/",
    model: "m",
    apiKeyEnv: "ROTA_MODEL_KEY",
  };
  const { hints, config } = load({
    file: { agents: { a: { executor } } },
    environment: {
      ROTA_URL: "http://127.0.0.1:1",
      ROTA_KEY: "rota_x",
      ROTA_MODEL_KEY: "secret",
      ROTA_TASK_ID: "tsk_1",
      ROTA_REQUEST_ID: "req_1",
      ROTA_TASK_TOKEN: "rtt_1",
      ROTATE: "1",
      // As Kubernetes does for a service called rota.
      ROTA_PORT: "tcp://10.0.0.1:7682",
      ROTA_PORT_7682_TCP_ADDR: "10.0.0.1",
      ROTA_SERVICE_HOST: "10.0.0.1",
      ROTA_SERVICE_PORT: "7682",
    },
  });
  expect(hints).toEqual([]);
  expect(config.server.port).toBe(7682);
});

test("ROTA_PORT, ROTA_HOST, ROTA_STORAGE and ROTA_LOG_LEVEL set what they say", () => {
  const environment = {
    ROTA_PORT: "8001",
    ROTA_HOST: "::1",
    ROTA_STORAGE: "sqlite:a.db",
    ROTA_LOG_LEVEL: "warn",
  };
  const file = { server: { port: 1, host: "127.0.0.1" }, storage: "sqlite:b.db", log: { level: "debug" } };
  const { config, hints } = load({ file, environment });
  expect(config).toMatchObject({
    server: { port: 8001, host: "::1" },
    storage: "sqlite:a.db",
    log: { level: "warn" },
  });
  expect(hints).toEqual([]);
  expect(faultsOf({ environment: { ROTA_PORT: "high" } })).toEqual([
    '`server.port` must be an integer from 0 to 65535, not "high" (ROTA_PORT)',
  ]);
  expect(faultsOf({ environment: { ROTA_LOG_LEVEL: "loud" } })).toEqual([
    '`log.level` must be one of debug, info, warn, error, silent, not "loud" (ROTA_LOG_LEVEL)',
  ]);
  expect(faultsOf({ flags: { "log.level": "loud" } })[0]).toMatch(/ \(--log-level\)$/);
});

test("of a short and a long variable for one option the long one counts", () => {
  for (const environment of [
    { ROTA_PORT: "1", ROTA_SERVER_PORT: "2" },
    { ROTA_SERVER_PORT: "2", ROTA_PORT: "1" },
  ]) {
    expect(load({ environment }).config.server.port).toBe(2);
  }
});

test("a section that is no object keeps its fault when a variable would set something in it", () => {
  expect(faultsOf({ file: { scheduler: 5 }, environment: { ROTA_SCHEDULER_WORKER_COUNT: "3" } })).toEqual([
    "`scheduler` must be an object, not 5 (rota.config.json)",
  ]);
});

test("a variable that is named and missing is reported with all other faults", () => {
  const openai = (apiKeyEnv: string) => ({
    type: "openai",
    baseUrl: "http://127.0.0.1:1/v1",
    model: "m",
    apiKeyEnv,
  });
  const file = {
    schduler: {},
    webhooks: { secretEnv: "HOOKS" },
    executors: { message: openai("MODEL_KEY"), custom: openai("GOOD_KEY") },
    agents: { writer: { executor: openai("SPACED_KEY") }, reader: { executor: { type: "openia" } }, idle: 5 },
  };
  const environment = { GOOD_KEY: "sk-1", SPACED_KEY: "sk 2" };
  const faults = faultsOf({ file, environment });
  expect(faults.toSorted()).toEqual([
    expect.stringMatching(/^`agents\.idle` must be an object/),
    expect.stringMatching(/^`agents\.reader\.executor\.type` must be .*: did you mean `openai`\?/),
    expect.stringMatching(/^`agents\.writer\.executor\.apiKeyEnv` names .* SPACED_KEY, which holds no key/),
    expect.stringMatching(/^`executors\.message\.apiKeyEnv` names the variable MODEL_KEY, which is not set/),
    "`webhooks.secretEnv` names HOOKS, which is not set: set it, or leave the option out",
    "unknown option `schduler`: did you mean `scheduler`? (rota.config.json)",
  ]);
  const { schduler: _, webhooks: __, agents: ___, ...right } = file;
  expect(faultsOf({ file: { ...right, webhooks: file.webhooks } })).toHaveLength(3);
  expect(load({ file: right }).config.executors.message, "createRota reports it then").toBeDefined();
});

test("of thousands of faults the first fifty are reported, and how many there are", () => {
  const file = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`option${index}`, 1]));
  const faults = faultsOf({ file });
  expect([faults.length, faults.at(-1)]).toEqual([51, "and 4950 more"]);
  expect(() => load({ file })).toThrow("the configuration has 5000 faults:\n- unknown option `option0`");
});

test.each(["rota", "/rota/", "/", "//a", "/a/../b", "/rota?x", "/<b>", '/"'])(
  "a base path cannot be %j",
  (basePath) => {
    expect(() => load({ file: JSON.stringify({ server: { basePath } }) })).toThrow(
      '`server.basePath` must be a path without a slash at the end, like "/rota", or empty',
    );
  },
);

test.each(["", "/rota", "/apps/rota-1.x"])("a base path can be %j", (basePath) => {
  expect(load({ file: JSON.stringify({ server: { basePath } }) }).config.server.basePath).toBe(basePath);
});

test.each([[true], [0], [11], [1.5], [[]], [{ hops: 1 }], [null]])(
  "proxies cannot be trusted by %j",
  (trustProxy) => {
    expect(() => load({ file: JSON.stringify({ server: { trustProxy } }) })).toThrow(
      '`server.trustProxy` must be false, the number of proxies in front of Rota (1 to 10), or an array of their addresses and networks, like ["127.0.0.1", "10.0.0.0/8"]',
    );
  },
);

test.each([["proxy.internal"], ["10.0.0.0/33"], [5]])("a trusted proxy cannot be %j", (entry) => {
  const trustProxy = ["127.0.0.1", entry];
  expect(() => load({ file: JSON.stringify({ server: { trustProxy } }) })).toThrow(
    `\`server.trustProxy.1\` must be an address ("127.0.0.1") or a network ("10.0.0.0/8"), not ${JSON.stringify(entry)}`,
  );
});

test.each([
  ["false", false],
  ["2", 2],
  ["10.0.0.0/8, 127.0.0.1", ["10.0.0.0/8", "127.0.0.1"]],
  ['["::1"]', ["::1"]],
])("a variable that names proxies can be %j", (text, expected) => {
  const { config } = load({ environment: { ROTA_SERVER_TRUST_PROXY: text } });
  expect(config.server.trustProxy).toEqual(expected);
});

test.each([
  ["*", ""],
  ["null", ""],
  ["app.example.com", ""],
  ["ftp://app.example.com", ""],
  ["https://*.example.com", ""],
  ["https://app.example.com/", ': write "https://app.example.com"'],
  ["https://App.example.com", ': write "https://app.example.com"'],
  ["https://app.example.com:443", ': write "https://app.example.com"'],
  [5, ""],
])("pages cannot be allowed by the origin %j", (entry, hint) => {
  const cors = { origins: ["https://app.example.com", entry] };
  expect(() => load({ file: JSON.stringify({ server: { cors } }) })).toThrow(
    `\`server.cors.origins.1\` must be an origin, like "https://app.example.com" or "http://localhost:5173", not ${JSON.stringify(entry)}${hint}`,
  );
});

test.each([[true], [{ "https://app.example.com": true }], [Array(101).fill("https://app.example.com")]])(
  "origins cannot be %.40j",
  (origins) => {
    expect(() => load({ file: JSON.stringify({ server: { cors: { origins } } }) })).toThrow(
      '`server.cors.origins` must be an array of at most 100 origins, like ["https://app.example.com"]',
    );
  },
);

test("a variable that names origins separates them by commas", () => {
  const text = "https://app.example.com, http://[::1]:5173";
  const { config } = load({ environment: { ROTA_SERVER_CORS_ORIGINS: text } });
  expect(config.server.cors.origins).toEqual(["https://app.example.com", "http://[::1]:5173"]);
});

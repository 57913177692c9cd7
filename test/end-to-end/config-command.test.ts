import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newFolder, type RunningProcess, runRota } from "./server-process.ts";

async function config(
  args: readonly string[],
  params: { file?: [string, string]; environment?: Record<string, string> } = {},
): Promise<RunningProcess & { code: number | null }> {
  const folder = newFolder();
  if (params.file !== undefined) writeFileSync(join(folder, params.file[0]), params.file[1]);
  const process = runRota(["config", ...args], { folder, environment: params.environment ?? {} });
  return { ...process, code: (await process.ended).code };
}

const FILE: [string, string] = [
  "rota.config.yaml",
  `
server: { port: 8000 }
storage: postgres://rota:hidden@db.example/rota
lanes: { crawl: 5, mail: { concurrency: 1, total: 2 } }
agents:
  research:
    executor: { type: http, url: "https://x.example/?key=hidden", headers: { authorization: hidden } }
    maxInflight: 2
`,
];

test("check says that a configuration is right, and which", async () => {
  const checked = await config(["check"], { file: FILE });
  expect([checked.code, checked.stdout(), checked.stderr()]).toEqual([
    0,
    "The configuration is valid (rota.config.yaml).\n",
    "",
  ]);
  expect((await config(["check"])).stdout()).toBe(
    "The configuration is valid (there is no file, and none is needed).\n",
  );
});

test("check reports everything that is wrong, and exits with 1", async () => {
  const checked = await config(["check", "--config", "mine.yml", "--port", "high"], {
    file: ["mine.yml", "schduler: {}\nagents: { research: { maxInflight: 0 } }\n"],
    environment: { ROTA_RETRY_JITTER: "much", ROTA_SCHEDULER_MAX_INFLITE: "5" },
  });
  expect([checked.code, checked.stdout()]).toEqual([1, ""]);
  expect(checked.stderr().trim().split("\n").sort()).toEqual([
    "- `agents.research.maxInflight` must be an integer from 1 to 10000000, not 0 (mine.yml)",
    '- `retry.jitter` must be a number from 0 to 1, not "much" (ROTA_RETRY_JITTER)',
    '- `server.port` must be an integer from 0 to 65535, not "high" (--port)',
    "- unknown option `schduler`: did you mean `scheduler`? (mine.yml)",
    "the configuration has 4 faults:",
  ]);
});

test("check misses a variable that holds no key", async () => {
  const file: [string, string] = [
    "rota.config.yaml",
    "agents: { research: { executor: { type: openai, baseUrl: http://127.0.0.1:1/v1, model: m, apiKeyEnv: MY_KEY } } }",
  ];
  const missing = await config(["check"], { file });
  expect([missing.code, missing.stderr()]).toEqual([
    1,
    expect.stringContaining(
      "`agents.research.executor.apiKeyEnv` names the variable MY_KEY, which is not set",
    ),
  ]);
  expect((await config(["check"], { file, environment: { MY_KEY: "sk-1" } })).code).toBe(0);
});

test("show lists every option with its value and where that comes from, without secrets", async () => {
  const shown = await config(["show", "--host", "::1"], {
    file: FILE,
    environment: { ROTA_SCHEDULER_MAX_INFLIGHT: "7", ROTA_LANE_MAIN: "3" },
  });
  expect(shown.code).toBe(0);
  expect(shown.stdout()).not.toContain("hidden");
  const rows = shown
    .stdout()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  expect(rows[0]).toEqual(["OPTION", "VALUE", "FROM"]);
  for (const row of [
    ["server.host", "::1", "--host"],
    ["server.port", "8000", "rota.config.yaml"],
    ["storage", "postgres://db.example/rota", "rota.config.yaml"],
    ["scheduler.maxInflight", "7", "ROTA_SCHEDULER_MAX_INFLIGHT"],
    ["scheduler.maxPerAgent", "100", "default"],
    ["scheduler.resultTTLSec", "-", "default"],
    ["lanes.main", "3", "ROTA_LANE_MAIN"],
    ["lanes.cron", "30", "default"],
    ["lanes.crawl", "5", "rota.config.yaml"],
    ["lanes.mail", '{"concurrency":1,"total":2}', "rota.config.yaml"],
    [
      "agents.research",
      '{"executor":{"type":"http","url":"https://x.example/?…","headers":{"authorization":"…"}},"maxInflight":2}',
      "rota.config.yaml",
    ],
  ]) {
    expect(rows).toContainEqual(row);
  }
});

test("show prints JSON with --json", async () => {
  const shown = await config(["show", "--json"], { file: FILE });
  const { options, count } = JSON.parse(shown.stdout());
  expect(options).toHaveLength(count);
  expect(options).toContainEqual({ option: "server.port", value: 8_000, from: "rota.config.yaml" });
  expect(options).toContainEqual({ option: "executors.custom", value: null, from: "default" });
  expect(shown.stdout()).not.toContain("hidden");
});

test("show reports what is wrong when there is nothing to show", async () => {
  const shown = await config(["show"], { file: ["rota.config.json", '{"server": }'] });
  expect([shown.code, shown.stdout()]).toEqual([1, ""]);
  expect(shown.stderr()).toBe(
    "the configuration has a fault: rota.config.json is not JSON: Unexpected token '}' (rota.config.json:1:12)\n",
  );
});

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { processEnvironment } from "../../src/config/process-environment.ts";
import { BEHAVIOURS } from "../../src/worker-conformance/behaviours.ts";
import { type CheckedBehaviour, runConformance } from "../../src/worker-conformance/run-conformance.ts";
import { formatTable, replaceSection } from "../docs/markdown.ts";
import { runRota } from "../end-to-end/server-process.ts";
import { NEEDS_PYTHON, PYTHON } from "../support/python.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const here = (file: string) => join(import.meta.dirname, file);
const HANDLER = here("conformance-handler.sh");
/** The last one also waits for the others. */
const ALL_MS = 240_000;

const canRun = (program: string) => spawnSync(program, ["--version"]).status === 0;
const hasShellTools = ["bash", "curl", "jq"].every(canRun);
const needsShellTools = hasShellTools ? "" : " (skipped: no bash, curl and jq here)";

/** Most of the time a worker is only watched: three programs fit at once, four processes of each. */
const AT_ONCE = 3;
let running: Promise<unknown>[] = [];

async function check(command: readonly string[], only?: readonly number[]): Promise<CheckedBehaviour[]> {
  while (running.length >= AT_ONCE) await Promise.race(running);
  const environment = { ...processEnvironment(), PYTHONPATH: join(ROOT, "clients", "python", "src") };
  const checked = runConformance({ command, environment, atOnce: 4, ...(only && { only }) });
  const settled = checked
    .catch(() => undefined)
    .finally(() => {
      running = running.filter((other) => other !== settled);
    });
  running.push(settled);
  return checked;
}

const failedOnes = (results: readonly CheckedBehaviour[]) => results.filter(({ ok }) => !ok);

test.concurrent("a worker that does everything wrong fails every behaviour, with a reason", {
  timeout: ALL_MS,
}, async ({ expect }) => {
  const results = await check([process.execPath, here("wrong-worker.ts")]);
  expect(results.filter(({ ok }) => ok)).toEqual([]);
  expect(results).toHaveLength(BEHAVIOURS.length);
  for (const { why } of results) expect(why).toMatch(/^it |^the |^a /);
});

test.concurrent.each([
  { fault: "none", only: [1, 5, 6, 7], fails: [] },
  { fault: "steers", only: [5, 6], fails: [] },
  { fault: "heartbeats once", only: [5], fails: [/ms passed without a heartbeat for an attempt/] },
  { fault: "heartbeats without key", only: [1], fails: [/it sent what Rota refuses: heartbeat: no `Author/] },
  { fault: "finishes differently", only: [7], fails: [/it repeated a finish with another outcome/] },
])("a worker with one fault fails for it alone: $fault", { timeout: ALL_MS }, async (given) => {
  const { fault, only, fails } = given;
  const results = await check([process.execPath, here("almost-right-worker.ts"), fault], only);
  expect(results).toHaveLength(only.length);
  expect(failedOnes(results).map(({ why }) => why)).toEqual(fails.map((why) => expect.stringMatching(why)));
});

describe.concurrent("a worker keeps every behaviour:", () => {
  test("RotaWorker", { timeout: ALL_MS }, async ({ expect }) => {
    const program = ["--import", join(ROOT, "scripts", "from-source.ts"), here("conformance-worker.ts")];
    expect(failedOnes(await check([process.execPath, ...program]))).toEqual([]);
  });

  test("rota worker", { timeout: ALL_MS }, async ({ expect }) => {
    const main = join(ROOT, "src", "cli", "main.ts");
    const flags = ["--agent", "conformance", "--slots", "2", "--log-level", "warn"];
    expect(failedOnes(await check([process.execPath, main, "worker", ...flags, "--", HANDLER]))).toEqual([]);
  });

  test.skipIf(!hasShellTools)(
    `worker.sh with curl${needsShellTools}`,
    { timeout: ALL_MS },
    async ({ expect }) => {
      const worker = join(ROOT, "examples", "workers", "worker.sh");
      expect(failedOnes(await check([worker, "conformance", HANDLER]))).toEqual([]);
    },
  );

  test.skipIf(PYTHON === null)(
    `rota.Worker of Python, with threads${NEEDS_PYTHON}`,
    { timeout: ALL_MS },
    async ({ expect }) => {
      expect(failedOnes(await check([PYTHON as string, here("conformance_worker.py")]))).toEqual([]);
    },
  );

  test.skipIf(PYTHON === null)(
    `rota.Worker of Python, with asyncio${NEEDS_PYTHON}`,
    { timeout: ALL_MS },
    async ({ expect }) => {
      expect(failedOnes(await check([PYTHON as string, here("conformance_worker.py"), "--async"]))).toEqual(
        [],
      );
    },
  );
});

test("a program that is no worker fails, and so does one that does not exist", async () => {
  const options = { environment: processEnvironment(), atOnce: 1, only: [1] };
  const ended = await runConformance({
    ...options,
    command: [process.execPath, "--eval", "console.log('hi')"],
  });
  expect(ended).toMatchObject([
    { number: 1, ok: false, why: "it ended (exit code 0) before it registered and claimed", output: "hi" },
  ]);
  const absent = await runConformance({ ...options, command: ["./no-such-worker"] });
  expect(absent[0]?.why).toContain("cannot be started");
});

test("rota worker-conformance prints a table, and exits with 1 if a behaviour does not hold", async () => {
  const args = ["worker-conformance", "--only", "1", "--", process.execPath, here("wrong-worker.ts")];
  const run = runRota(args);
  expect((await run.ended).code).toBe(1);
  expect(run.stdout()).toContain(`1  FAILED  ${BEHAVIOURS[0]?.title}`);
  expect(run.stdout()).toContain("1: it registered without an `instanceId`");
  const wrong = runRota(["worker-conformance", "--only", "99", "--", "true"]);
  expect((await wrong.ended).code).toBe(2);
  expect(wrong.stderr()).toContain("--only must be numbers from 1 to 17");
});

/** `npx vitest run test/workers/conformance.test.ts -u` writes the table anew. */
test("docs/worker-conformance.md has every behaviour with its number, and no other", async () => {
  const file = join(ROOT, "docs", "worker-conformance.md");
  const rows = BEHAVIOURS.map(({ number, title }) => [String(number), title]);
  const table = formatTable([["no.", "the worker …"], ...rows]);
  await expect(replaceSection(readFileSync(file, "utf8"), "behaviours", table)).toMatchFileSnapshot(file);
});

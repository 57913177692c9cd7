import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { LANGUAGES, SUBMISSIONS, snippetOf } from "../../dashboard/src/views/overview/snippets.ts";
import { WORKER_LANGUAGES, workerSnippet } from "../../dashboard/src/views/workers/worker-snippets.ts";
import { silentLog } from "../../src/model/log.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { newFolder } from "../end-to-end/server-process.ts";
import { NEEDS_PYTHON, PYTHON } from "../support/python.ts";

const ROOT = join(import.meta.dirname, "..", "..");

/** How a user runs what they have pasted. */
const PROGRAMS = {
  curl: (code: string) => ["sh", "-c", code],
  TypeScript: (code: string) => [
    process.execPath,
    "--import",
    join(ROOT, "scripts", "from-source.ts"),
    "--input-type=module-typescript",
    "--eval",
    code,
  ],
  Python: (code: string) => ["python3", "-c", code],
} as const;

function has(program: string): boolean {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const MISSING = { curl: !has("curl"), TypeScript: false, Python: !has("python3") };

async function openServer(hasKey: boolean) {
  const rota = await createRota({
    storage: "sqlite::memory:",
    executors: { message: { type: "echo" }, instruction: { type: "echo" } },
  });
  const key = hasKey ? (await rota.keys.create({ role: "operator", name: "first" })).key : "";
  await rota.start();
  const server = await listen({ rota, log: silentLog, host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    await server.close();
    await rota.stop({ graceMs: 0 });
  });
  return { rota, key, url: server.url };
}

// The first run of the dashboard shows them. Where curl or Python is not installed, its snippets are skipped.
for (const language of LANGUAGES) {
  test.skipIf(MISSING[language]).each([
    ["without keys", false],
    ["with a key", true],
  ])(`the ${language} of the first run does what it says, %s`, async (_how, hasKey) => {
    const { rota, key, url } = await openServer(hasKey);
    for (const what of SUBMISSIONS) {
      const [program = "", ...args] = PROGRAMS[language](snippetOf(what, language, { url, hasKey }));
      const env = { ...process.env, ROTA_KEY: key };
      const { stdout } = await promisify(execFile)(program, args, { env, cwd: ROOT });
      expect(stdout, what).toMatch(/\w/);
    }
    await expect.poll(async () => (await rota.tasks.counts()).counts).toEqual({ done: 4 });
    const { tasks } = await rota.tasks.list();
    expect(tasks.map(({ instruction, message }) => instruction ?? message).toSorted()).toEqual([
      "Read the page",
      "Say hello to the team",
      "Sum it up",
      "Where is my parcel?",
    ]);
    expect((await rota.schedules.list()).schedules).toMatchObject([{ message: "Sum up the news" }]);
  });
}

/** A folder with the command `rota`, as the installed package has it. */
function commandFolder(): string {
  const folder = newFolder();
  symlinkSync(join(ROOT, "bin", "rota.js"), join(folder, "rota"));
  symlinkSync(process.execPath, join(folder, "node"));
  return folder;
}

/** How a user runs what they have pasted. */
const WORKER_PROGRAMS = {
  TypeScript: PROGRAMS.TypeScript,
  Python: (code: string) => [PYTHON ?? "python3", "-c", code],
  sh: (code: string) => [
    "sh",
    "-c",
    code.replace(/^export ROTA_KEY=.*$/m, "").replace(/^rota /m, "exec rota "),
  ],
} as const;

// The view of workers shows them while there is none.
for (const language of WORKER_LANGUAGES) {
  const isMissing = language === "Python" && PYTHON === null;
  test.skipIf(isMissing).each([
    ["without keys", false, "shout"],
    ["with a key", true, "to shout"],
  ])(`the ${language} of a first worker runs tasks, %s${isMissing ? NEEDS_PYTHON : ""}`, async (...given) => {
    const [, hasKey, agentId] = given;
    const rota = await createRota({ storage: "sqlite::memory:" });
    const { key } = hasKey ? await rota.keys.create({ role: "admin", name: "first" }) : { key: "" };
    await rota.start();
    const server = await listen({ rota, log: silentLog, host: "127.0.0.1", port: 0 });
    const [program = "", ...args] = WORKER_PROGRAMS[language](
      workerSnippet(language, { url: server.url, hasKey, agentId }),
    );
    const { PATH = "" } = process.env;
    const worker = spawn(program, args, {
      cwd: ROOT,
      stdio: "ignore",
      env: {
        ...process.env,
        PATH: `${commandFolder()}:${PATH}`,
        PYTHONPATH: join(ROOT, "clients", "python", "src"),
        ROTA_KEY: key,
      },
    });
    const ended = once(worker, "exit");
    onTestFinished(async () => {
      worker.kill("SIGKILL");
      await ended;
      await server.close();
      await rota.stop({ graceMs: 0 });
    });
    await expect.poll(async () => (await rota.workers.list()).workers).toMatchObject([{ slots: 4 }]);
    const { taskId } = await rota.tasks.submit({ agentId, message: "hello" });
    expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done", result: "HELLO" });
  });
}

import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { LANGUAGES, SUBMISSIONS, snippetOf } from "../../dashboard/src/views/overview/snippets.ts";
import { silentLog } from "../../src/model/log.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";

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

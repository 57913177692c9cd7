import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { RotaClient } from "../../src/client/index.ts";
import { codeBlocks } from "../docs/markdown.ts";
import { newFolder, runRota, startServer } from "../end-to-end/server-process.ts";
import { createTestDatabase } from "../postgres/database.ts";
import { NEEDS_PYTHON, PYTHON } from "../support/python.ts";
import { serveConfig } from "../support/serve-config.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const FROM_SOURCE = ["--import", join(ROOT, "scripts", "from-source.ts")];
const PYTHONPATH = join(ROOT, "clients", "python", "src");
const python = PYTHON ?? "python3";
const hasShellTools = ["bash", "curl", "jq"].every((name) => spawnSync(name, ["--version"]).status === 0);

function start(command: readonly string[], environment: Readonly<Record<string, string>>): ChildProcess {
  const [file = "", ...args] = command;
  const env = { ...process.env, PYTHONPATH, ...environment };
  const child = spawn(file, args, { cwd: newFolder(), env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

function example(file: string): string {
  return join(ROOT, "examples", file);
}

const WORKERS = [
  {
    name: "worker.ts",
    can: true,
    command: [process.execPath, ...FROM_SOURCE, example("workers/worker.ts")],
    reports: true,
  },
  {
    name: `worker.py${NEEDS_PYTHON}`,
    can: PYTHON !== null,
    command: [python, example("workers/worker.py")],
    reports: true,
  },
  {
    name: "worker.sh",
    can: hasShellTools,
    command: [example("workers/worker.sh"), "shout", "tr", "a-z", "A-Z"],
    reports: false,
  },
];

for (const { name, can, command, reports } of WORKERS) {
  test.skipIf(!can)(`${name} runs tasks of a server, and is gone after SIGTERM`, async () => {
    const { url } = await serveConfig({ folder: newFolder() });
    const client = new RotaClient({ url });
    const worker = start(command, { ROTA_URL: url });
    await expect.poll(async () => (await client.workers.list()).workers.length).toBe(1);
    const submitted = await Promise.all(
      ["hello", "world"].map((message) => client.tasks.submit({ agentId: "shout", message })),
    );
    const ended = await Promise.all(submitted.map(({ taskId }) => client.tasks.wait(taskId)));
    expect(ended.map(({ state, result }) => [state, result])).toEqual([
      ["done", "HELLO"],
      ["done", "WORLD"],
    ]);
    if (reports) {
      const { taskId = "" } = submitted[0] ?? {};
      const lines = async () => (await client.tasks.logs(taskId)).lines.map(({ text }) => text);
      await expect.poll(lines).toEqual(["shouting 5 characters"]);
    }
    worker.kill("SIGTERM");
    expect(await once(worker, "exit")).toEqual([0, null]);
    expect((await client.workers.list()).workers).toEqual([]);
  });
}

test.skipIf(PYTHON === null)(
  `the client programs of clients/python/README.md print what they say${NEEDS_PYTHON}`,
  async () => {
    const { url } = await serveConfig({ folder: newFolder() });
    const blocks = codeBlocks(readFileSync(join(ROOT, "clients", "python", "README.md"), "utf8"));
    const programs = blocks.filter(({ language }) => language === "python").map(({ text }) => text);
    const clients = programs.filter((text) => text.includes("rota.Client("));
    expect(clients).toHaveLength(2);
    start([python, saved(programs[0] ?? "")], { ROTA_URL: url });
    for (const text of clients) {
      const program = saved(text.replaceAll("http://127.0.0.1:7682", url));
      const env = { ...process.env, PYTHONPATH, ROTA_URL: url };
      const { stdout } = await promisify(execFile)(python, [program], { env });
      const promised = [...text.matchAll(/print\(.*\)(?: {2}# (.*))?$/gm)].map(([, output]) => output);
      const printed = stdout.trim().split("\n");
      expect(printed).toHaveLength(promised.length);
      for (const [index, output] of promised.entries())
        if (output !== undefined) expect(printed[index]).toBe(output);
    }
  },
);

function saved(text: string): string {
  const file = join(newFolder(), "program.py");
  writeFileSync(file, text);
  return file;
}

test("three programs on one PostgreSQL and a worker do what examples/many-processes says", {
  timeout: 90_000,
}, async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const environment = { ROTA_STORAGE: database.url };
  const folder = join(ROOT, "examples", "many-processes");
  const node = (file: string) => [process.execPath, ...FROM_SOURCE, join(folder, file)];
  const server = await startServer({
    storage: database.url,
    args: ["--config", join(folder, "rota.config.json")],
    folder: newFolder(),
  });
  for (const file of ["invoices.ts", "mail.ts"]) start(node(file), environment);
  runRota(["worker", "--agent", "labels", "--", join(folder, "label.sh")], {
    environment: { ROTA_URL: server.url },
  });
  const [file = "", ...args] = node("orders.ts");
  const env = { ...process.env, ...environment };
  const { stdout } = await promisify(execFile)(file, args, { cwd: newFolder(), env });
  const promised = /^\/\/ Prints:\n((?:\/\/ .*\n?)+)/m.exec(
    readFileSync(join(folder, "orders.ts"), "utf8"),
  )?.[1];
  expect(stdout).toBe(promised?.replaceAll(/^\/\/ /gm, ""));
});

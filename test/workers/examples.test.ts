import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { TestServer } from "../../src/worker-conformance/test-server.ts";
import { codeBlocks } from "../docs/markdown.ts";
import { newFolder } from "../end-to-end/server-process.ts";
import { NEEDS_PYTHON, PYTHON } from "../support/python.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const WORKERS = join(ROOT, "examples", "workers");
const python = PYTHON ?? "python3";
const hasShellTools = ["bash", "curl", "jq"].every((name) => spawnSync(name, ["--version"]).status === 0);

function pythonProgramOf(page: string): string {
  const text = readFileSync(join(ROOT, page), "utf8");
  return codeBlocks(text).find(({ language }) => language === "python")?.text ?? "";
}

function saved(text: string): string {
  const file = join(newFolder(), "worker.py");
  writeFileSync(file, text);
  return file;
}

const EXAMPLES = [
  {
    name: "worker.ts",
    can: true,
    command: () => [
      process.execPath,
      "--import",
      join(ROOT, "scripts/from-source.ts"),
      join(WORKERS, "worker.ts"),
    ],
  },
  {
    name: `worker.py${NEEDS_PYTHON}`,
    can: PYTHON !== null,
    command: () => [python, join(WORKERS, "worker.py")],
  },
  {
    name: `worker.sh${hasShellTools ? "" : " (skipped: no bash, curl and jq here)"}`,
    can: hasShellTools,
    command: () => [join(WORKERS, "worker.sh"), "shout", "tr", "a-z", "A-Z"],
  },
  {
    name: `the program of docs/workers.md${NEEDS_PYTHON}`,
    can: PYTHON !== null,
    command: () => [python, saved(pythonProgramOf("docs/workers.md"))],
  },
  {
    name: `the program of clients/python/README.md${NEEDS_PYTHON}`,
    can: PYTHON !== null,
    command: () => [python, saved(pythonProgramOf("clients/python/README.md"))],
  },
];

for (const { name, can, command } of EXAMPLES) {
  test.skipIf(!can)(`${name} runs a task, and ends with 0 after SIGTERM`, async () => {
    const server = new TestServer();
    await server.listen();
    onTestFinished(() => server.close());
    const [file = "", ...args] = command();
    const worker = spawn(file, args, {
      cwd: newFolder(),
      env: {
        ...process.env,
        ROTA_URL: `http://127.0.0.1:${server.port}`,
        ROTA_KEY: server.key,
        PYTHONPATH: join(ROOT, "clients", "python", "src"),
      },
    });
    onTestFinished(() => void worker.kill("SIGKILL"));
    const ended = once(worker, "close");
    const printed = textOf(worker.stderr);
    await expect.poll(() => server.requests("claim").length).toBeGreaterThan(0);
    const attempt = server.submit("hello");
    await expect.poll(() => attempt.outcome).toBe("done");
    expect(attempt.result).toBe("HELLO");
    const claims = server.requests("claim").length;
    await expect.poll(() => server.requests("claim").length).toBeGreaterThan(claims);
    worker.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect(await printed).not.toContain("Terminated");
    expect(server.faults).toEqual([]);
  });

  test.skipIf(!can)(`${name} ends with 0 after SIGTERM though it has never reached a server`, async () => {
    let tries = 0;
    const broken = createServer((socket) => {
      tries += 1;
      socket.destroy();
    });
    broken.listen(0, "127.0.0.1");
    await once(broken, "listening");
    onTestFinished(() => void broken.close());
    const [file = "", ...args] = command();
    const { port } = broken.address() as AddressInfo;
    const worker = spawn(file, args, {
      cwd: newFolder(),
      env: {
        ...process.env,
        ROTA_URL: `http://127.0.0.1:${port}`,
        PYTHONPATH: join(ROOT, "clients", "python", "src"),
      },
    });
    onTestFinished(() => void worker.kill("SIGKILL"));
    const ended = once(worker, "close");
    const printed = textOf(worker.stderr);
    await expect.poll(() => tries).toBeGreaterThan(0);
    worker.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect(await printed).not.toContain("Terminated");
  });
}

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runRota } from "../../../test/end-to-end/server-process.ts";
import { TestServer } from "../../worker-conformance/test-server.ts";

async function openServer(): Promise<{ server: TestServer; environment: Record<string, string> }> {
  const server = new TestServer();
  await server.listen();
  onTestFinished(() => server.close());
  const environment = { ROTA_URL: `http://127.0.0.1:${server.port}`, ROTA_KEY: server.key };
  return { server, environment };
}

test("runs the program for each task, with the variables that it may have", async () => {
  const { server, environment } = await openServer();
  const program = ["sh", "-c", 'echo "$(cat) $ROTA_TASK_ID $ROTA_ATTEMPT $GREETING $ROTA_KEY"'];
  const flags = [
    "--agent",
    "a",
    "--agent",
    "b",
    "--slots",
    "2",
    "--label",
    "gpu=yes",
    "--pass-env",
    "GREETING",
  ];
  const worker = runRota(["worker", ...flags, "--name", "mine", "--", ...program], {
    environment: { ...environment, GREETING: "good morning" },
  });
  await expect
    .poll(() => server.requests("register")[0]?.body)
    .toMatchObject({
      name: "mine",
      agents: ["a", "b"],
      slots: 2,
      labels: { gpu: "yes" },
      runtime: expect.stringMatching(/^rota worker \d/),
    });
  const attempt = server.submit("hello");
  await expect.poll(() => attempt.outcome).toBe("done");
  expect(attempt.result).toBe(`hello ${attempt.taskId} 1 good morning `);
  expect(worker.stdout()).toMatch(/^Worker wrk_\w+ waits for tasks of a, b\n$/);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });
  expect(server.deleted).toBe(1);
});

test("aborts the tasks that still run after --grace, and gives them back", async () => {
  const { server, environment } = await openServer();
  const flags = ["--agent", "a", "--grace", "0.2"];
  const worker = runRota(["worker", ...flags, "--", "sleep", "60"], { environment });
  const attempt = server.submit("x");
  await expect.poll(() => attempt.state).toBe("held");
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });
  // Either the server recorded the release, or the worker was deleted before it had begun.
  expect(attempt.outcome ?? "released").toBe("released");
});

test("refuses to start with a program that does not exist, before it claims any task", async () => {
  const { server, environment } = await openServer();
  server.submit("x");
  const worker = runRota(["worker", "--agent", "a", "--", "./no-such-program"], { environment });
  expect(await worker.ended).toMatchObject({ code: 2 });
  expect(worker.stderr()).toContain(
    'cannot run "./no-such-program": there is no such program, or it may not be executed',
  );
  expect(server.requests("register")).toEqual([]);
});

test("a program that is gone later fails the task for good, and the worker goes on", async () => {
  const { server, environment } = await openServer();
  const folder = mkdtempSync(join(tmpdir(), "rota-worker-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, "handler");
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
  const worker = runRota(["worker", "--agent", "a", "--", program], { environment });
  await expect.poll(() => server.requests("register")).toHaveLength(1);
  rmSync(program);
  const attempt = server.submit("x");
  await expect.poll(() => attempt.outcome).toBe("failed");
  expect(attempt).toMatchObject({
    error: `cannot run "${program}": there is no such program`,
    retryable: false,
  });
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });
});

test("ends with what the server says if it refuses the worker", async () => {
  const { environment } = await openServer();
  const worker = runRota(["worker", "--agent", "a", "--", "true"], {
    environment: { ...environment, ROTA_KEY: "rota_wrong" },
  });
  expect(await worker.ended).toMatchObject({ code: 2 });
  expect(worker.stderr()).toContain("unknown key");
});

test.each([
  [["worker", "--", "true"], "required option '--agent <id>' not specified"],
  [
    ["worker", "--agent", "a", "--slots", "many", "--", "true"],
    '`slots` must be an integer from 1 to 1000, not "many" (--slots)',
  ],
  [["worker", "--agent", "a", "--label", "gpu", "--", "true"], "--label must be like gpu=yes, not gpu"],
  [["worker", "--agent", "a", "--result", "xml", "--", "true"], "--result must be one of auto, text, json"],
  [["worker", "--agent", "a", "--log-level", "loud", "--", "true"], "--log-level must be one of"],
  [["worker", "--agent", "a"], "missing required argument 'command'"],
])("rota %j is refused: %s", async (args, message) => {
  const run = runRota(args);
  expect(await run.ended).toMatchObject({ code: 2 });
  expect(run.stderr()).toContain(message);
});

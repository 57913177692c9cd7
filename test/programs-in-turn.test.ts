import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Executor } from "../src/executors/executor.ts";
import { createRota } from "../src/rota.ts";

/** Programs that open one SQLite file, one after the other, each with its own agents. */
function makeFile() {
  const folder = mkdtempSync(join(tmpdir(), "rota-in-turn-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return async (agents: Readonly<Record<string, Executor>>) => {
    const rota = await createRota({ storage: `sqlite:${join(folder, "rota.db")}` });
    onTestFinished(() => rota.stop());
    for (const [id, executor] of Object.entries(agents)) rota.agent(id, executor);
    await rota.start();
    return rota;
  };
}

test("a program that opens the file of another leaves that one's tasks waiting, and runs its own", async () => {
  const open = makeFile();
  const first = await open({ writer: () => new Promise(() => {}) });
  // More than run at once: some have started when it stops, others have not.
  const inputs = Array.from({ length: 6 }, () => ({
    agentId: "writer",
    payload: 1,
    retryPolicy: { maxRetries: 3 },
  }));
  const kept = (await first.tasks.submitMany(inputs)).map(({ taskId }) => taskId);
  await first.drain({ graceMs: 0 });
  await first.stop();

  const second = await open({ researcher: async () => "found" });
  const { taskId, warnings } = await second.tasks.submit({ agentId: "researcher", payload: 2 });
  expect(warnings).toBeUndefined();
  expect(await second.tasks.wait(taskId)).toMatchObject({ state: "done", result: "found" });
  for (const id of kept) {
    expect(await second.tasks.get(id)).toMatchObject({ state: "queued" });
    expect((await second.tasks.explain(id)).reasons).toContainEqual(
      expect.objectContaining({ code: "no_executor", message: expect.stringContaining("last seen at") }),
    );
  }
  await second.stop();

  const third = await open({ writer: async () => "written" });
  for (const id of kept) {
    expect(await third.tasks.wait(id)).toMatchObject({ state: "done", result: "written", retryCount: 0 });
  }
});

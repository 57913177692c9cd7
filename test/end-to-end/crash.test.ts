import { join } from "node:path";
import { expect, test } from "vitest";
import type { Task } from "../../src/index.ts";
import type { Rota } from "../../src/interface/rota.ts";
import { isTerminal } from "../../src/model/task-state.ts";
import { createRota } from "../../src/rota.ts";
import { startAgentProgram } from "./agent-program.ts";
import { eventually, newFolder, type ServerProcess, startServer } from "./server-process.ts";

/** How many tasks have been accepted when each process is killed. */
const KILLS = [10, 45, 80, 120];
const TASKS_PER_ROUND = 130;
const UNFINISHED = "waiting_dependency,delayed,queued,assigned,running";

const KINDS = [
  (name: string) => ({ message: name }),
  (name: string) => ({
    agentId: "worker",
    instruction: name,
    retryPolicy: { backoffMs: 1, maxRetries: 100 },
  }),
  (name: string) => ({ agentId: "worker", payload: name }),
  (name: string) => ({ payload: name, runAt: new Date(Date.now() + 200).toISOString() }),
];

test("what was accepted survives kill -9, again and again, and ends exactly once", {
  timeout: 120_000,
}, async () => {
  const program = await startAgentProgram();
  const storage = `sqlite:${join(newFolder(), "rota.db")}`;
  const environment = {
    ROTA_AGENTS: JSON.stringify({ worker: { executor: { type: "http", url: program.url } } }),
    ROTA_SCHEDULER_MAX_PER_AGENT: "10000",
    ROTA_SCHEDULER_MAX_QUEUE_SIZE: "10000",
  };
  const accepted = new Map<string, string>();
  for (const [round, killAfter] of KILLS.entries()) {
    const server = await startServer({ storage, environment });
    await submitUntilKilled(server, { round, killAfter, accepted });
    expect(await server.ended).toEqual({ code: null, signal: "SIGKILL" });
  }
  expect(accepted.size).toBeGreaterThanOrEqual(KILLS.reduce((sum, count) => sum + count));

  const last = await startServer({ storage, environment });
  program.release();
  await eventually(
    async () => (await last.ask(`/tasks?state=${UNFINISHED}&limit=1`)).body.count === 0,
    "every task to end",
  );
  for (const [id, name] of accepted) expectEnded((await last.ask(`/tasks/${id}`)).body, name);
  last.kill("SIGTERM");
  expect(await last.ended).toEqual({ code: 0, signal: null });

  const ends = await endsByTask(await createRota({ storage }));
  for (const [id, count] of ends) expect([id, count]).toEqual([id, 1]);
  for (const id of accepted.keys()) expect(ends.get(id)).toBe(1);
});

/** Submits tasks, several at a time, and kills the process once enough of them have been acknowledged. */
async function submitUntilKilled(
  server: ServerProcess,
  { round, killAfter, accepted }: { round: number; killAfter: number; accepted: Map<string, string> },
): Promise<void> {
  let acknowledged = 0;
  const submit = async (index: number): Promise<void> => {
    const name = `${round}-${index}`;
    const json = KINDS[index % KINDS.length]?.(name);
    try {
      const { status, body } = await server.ask("/tasks", { json });
      expect(status).toBe(202);
      accepted.set(body.taskId, name);
    } catch (error) {
      // The connection broke with the process, before a response.
      expect(error).toMatchObject({ message: expect.stringMatching(/fetch failed|terminated/) });
      return;
    }
    acknowledged += 1;
    if (acknowledged === killAfter) server.kill("SIGKILL");
  };
  await Promise.all(Array.from({ length: TASKS_PER_ROUND }, (_, index) => submit(index)));
}

function expectEnded(task: Task, name: string): void {
  expect([name, isTerminal(task.state)]).toEqual([name, true]);
  expect(task.attempts.filter(({ endedAt }) => endedAt === null)).toEqual([]);
  // What may not be repeated, or not once more, fails if it runs when its process is lost; all else gets done.
  if (task.state === "failed" && task.kind !== "instruction") {
    expect(task).toMatchObject({ error: "worker lost", retryCount: task.kind === "message" ? 1 : 0 });
    expect(task.attempts.at(-1)?.outcome).toBe("lost");
    return;
  }
  expect(task).toMatchObject({
    state: "done",
    result: task.agentId === "worker" ? { did: task.taskId } : name,
  });
}

/** How many events report the end of each task, in the whole log. */
async function endsByTask(rota: Rota): Promise<Map<string, number>> {
  const ends = new Map<string, number>();
  try {
    const marker = await rota.tasks.submit({ payload: "the last event of the log" });
    for await (const event of rota.events({ after: 0 })) {
      if (event.taskId === marker.taskId) break;
      if (isTerminal(event.state)) ends.set(event.taskId, (ends.get(event.taskId) ?? 0) + 1);
    }
    return ends;
  } finally {
    await rota.stop({ graceMs: 0 });
  }
}

import type { NewScheduleInput, RotaClient } from "../../../../src/client/index.ts";
import { hasCode } from "../../api/errors.ts";

/** All of the sample belongs to this agent, which returns its input and costs nothing. */
export const SAMPLE_AGENT = "rota-sample";
const SAMPLE_SESSION = "sample:hello";
const OF_SAMPLE = { agentId: SAMPLE_AGENT, metadata: { sample: true } } as const;
const LATER_MS = 60_000;
const LOOK_MS = 250;
/** A bulk action on a dozen tasks takes a moment. */
const LOOKS_MAX = 40;

const TASKS = ["Say hello to the team", "Name three colours", "Count to ten"] as const;

/** Each waits for those it names. */
const BATCH = {
  tasks: [
    { key: "collect", instruction: "Collect the numbers" },
    { key: "draft", instruction: "Draft the report", dependsOn: ["collect"] },
    { key: "chart", instruction: "Draw the chart", dependsOn: ["collect"] },
    { key: "send", instruction: "Send the report", dependsOn: ["draft", "chart"] },
  ],
} as const;

const SCHEDULE: NewScheduleInput = {
  name: "Sample: morning greeting",
  schedule: "every day at 09:00",
  message: "Good morning",
  agent: SAMPLE_AGENT,
  metadata: { sample: true },
};

/** A few tasks, one that waits for a minute, a batch with dependencies, a session and a schedule. */
export async function runSample(client: RotaClient, hasSchedules: boolean): Promise<void> {
  await unlessCode(
    "conflict",
    client.agents.create({ id: SAMPLE_AGENT, executor: { type: "echo" }, maxInflight: 2 }),
  );
  for (const instruction of TASKS) await client.tasks.submit({ ...OF_SAMPLE, instruction });
  const runAt = new Date(Date.now() + LATER_MS).toISOString();
  await client.tasks.submit({ ...OF_SAMPLE, instruction: "Start in a minute", runAt });
  await client.tasks.submitBatch({ tasks: BATCH.tasks.map((task) => ({ ...OF_SAMPLE, ...task })) });
  await client.sessions.send(SAMPLE_SESSION, { message: "Hello, who is there?", agentId: SAMPLE_AGENT });
  if (hasSchedules) await client.schedules.create(SCHEDULE);
}

/** Removes all of it; what is gone already does not matter. */
export async function removeSample(client: RotaClient, hasSchedules: boolean): Promise<void> {
  if (hasSchedules) {
    const { schedules } = await client.schedules.list({ agent: SAMPLE_AGENT });
    for (const { id } of schedules) await unlessCode("not_found", client.schedules.delete(id));
  }
  await actOnAll(client, "cancel");
  await unlessCode("not_found", client.sessions.delete(SAMPLE_SESSION));
  await actOnAll(client, "delete");
  await unlessCode("not_found", client.agents.delete(SAMPLE_AGENT));
}

async function actOnAll(client: RotaClient, action: "cancel" | "delete"): Promise<void> {
  const { bulkId } = await client.bulks.start({ action, filter: { agentId: SAMPLE_AGENT } });
  for (let look = 0; look < LOOKS_MAX; look++) {
    if ((await client.bulks.get(bulkId)).state !== "running") return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function unlessCode(code: "conflict" | "not_found", work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!hasCode(error, code)) throw error;
  }
}

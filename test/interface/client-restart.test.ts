import { expect, onTestFinished, test } from "vitest";
import { RotaClient } from "../../src/client/index.ts";
import type { Rota } from "../../src/interface/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { Latch, until } from "../../src/testing/signals.ts";
import { RecordingLog } from "../support/recording-log.ts";
import { openTestRota } from "../support/rota.ts";

async function serve(rota: Rota, port: number) {
  const server = await listen({ rota, log: new RecordingLog(), host: "127.0.0.1", port });
  onTestFinished(() => server.close());
  return { ...server, port: Number(new URL(server.url).port) };
}

test("events and waits go on when the server is away for a while, and miss nothing", async () => {
  const { rota } = await openTestRota();
  const latch = new Latch<string>();
  rota.agent("slow", () => latch.opened);
  await rota.start();
  const first = await serve(rota, 0);
  // Without chance the pauses before connecting again are at their shortest.
  const client = new RotaClient({ url: first.url, random: () => 0 });
  const seqs: number[] = [];
  const undo = client.onEvent(({ seq }) => void seqs.push(seq));
  onTestFinished(undo);
  const { taskId } = await client.tasks.submit({ agentId: "slow", payload: 1 });
  const ended = client.tasks.wait(taskId);
  await until(() => seqs.length === 2, "the first events");

  await first.close();
  for (let n = 0; n < 3; n++) await rota.tasks.submit({ payload: n });
  latch.open("at last");
  await rota.tasks.wait(taskId);
  await serve(rota, first.port);

  expect(await ended).toMatchObject({ state: "done", result: "at last" });
  const { taskId: last } = await client.tasks.submit({ payload: "last" });
  await client.tasks.wait(last);
  const newest = (await takeAll(rota)).length;
  await until(() => seqs.length === newest, "the rest of the events");
  expect(seqs).toEqual(Array.from({ length: newest }, (_, index) => index + 1));
});

/** Every event there is. */
async function takeAll(rota: Rota): Promise<number[]> {
  const events = rota.events({ after: 0 });
  const live = rota.events();
  await live.ready;
  const seqs: number[] = [];
  for await (const { seq } of events) {
    seqs.push(seq);
    if (seq === live.position) break;
  }
  await live.return?.();
  return seqs;
}

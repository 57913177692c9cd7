/** A worker that keeps the protocol, except for the fault that its argument names. */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const SLOTS = 2;
const { ROTA_URL: url = "", ROTA_KEY: key = "" } = process.env;
const fault = process.argv[2] ?? "none";
const held = new Map<string, AbortController>();

async function call(path: string, body: object, { hasKey = true } = {}) {
  const response = await fetch(`${url}/v1/${path}`, {
    method: "POST",
    headers: { ...(hasKey && { authorization: `Bearer ${key}` }), "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as {
    workerId: string;
    heartbeatMs: number;
    attempts: { attemptToken: string; ok: boolean; task: { message: string } }[];
  };
}

/** Repeats a call until it is answered. */
async function insist(send: (tries: number) => ReturnType<typeof call>) {
  for (let tries = 0; ; tries += 1) {
    const answer = await send(tries).catch(() => null);
    if (answer !== null) return answer;
    await sleep(200);
  }
}

async function run(attemptToken: string, message: string): Promise<void> {
  const stop = new AbortController();
  held.set(attemptToken, stop);
  const [word, first = "", second = ""] = message.split(" ");
  if (word === "sleep") await sleep(Number(first), undefined, { signal: stop.signal }).catch(() => {});
  if (word === "append") appendFileSync(first, "ran\n");
  if (word === "sleep" && second !== "" && !stop.signal.aborted) appendFileSync(second, "slept\n");
  const done = { attemptToken, outcome: "done", result: message.slice("echo ".length) };
  const failed = { attemptToken, outcome: "failed", error: "on second thoughts" };
  const finish = (tries: number) =>
    call(`workers/${workerId}/finish`, {
      attempts: [fault === "finishes differently" && tries > 0 ? failed : done],
    });
  if (!stop.signal.aborted) await insist(finish);
  held.delete(attemptToken);
}

async function beat(): Promise<void> {
  const attempts = [...held.keys()].map((attemptToken) => ({
    attemptToken,
    ...(fault === "steers" && { messagesAfter: 0 }),
  }));
  const answer = await call(
    `workers/${workerId}/heartbeat`,
    { attempts },
    { hasKey: fault !== "heartbeats without key" },
  ).catch(() => null);
  for (const { attemptToken, ok } of answer?.attempts ?? []) if (!ok) held.get(attemptToken)?.abort();
}

async function heartbeats(everyMs: number): Promise<void> {
  for (let sent = 0; fault !== "heartbeats once" || sent === 0; ) {
    await sleep(everyMs);
    if (held.size === 0) continue;
    await beat();
    sent += 1;
  }
}

const registration = {
  name: "almost",
  instanceId: crypto.randomUUID(),
  agents: ["conformance"],
  slots: SLOTS,
};
const { workerId, heartbeatMs } = await call("workers", registration);
void heartbeats(heartbeatMs);
for (;;) {
  const free = SLOTS - held.size;
  if (free === 0) {
    await sleep(10);
    continue;
  }
  const claim = { claimId: crypto.randomUUID(), max: free, waitS: 1 };
  const { attempts } = await insist(() => call(`workers/${workerId}/claim`, claim));
  for (const { attemptToken, task } of attempts) void run(attemptToken, task.message);
}

/** A worker that has none of the behaviours, so that each check fails. */
import { appendFileSync } from "node:fs";
import { isAbsolute } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** How often it sends a finish that was refused. */
const FINISHES = 3;

const { ROTA_URL: url = "", ROTA_KEY: key = "" } = process.env;

async function call(path: string, body: object): Promise<Record<string, never>> {
  const response = await fetch(`${url}/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok && response.status !== 429 && response.status !== 503)
    throw new Error(await response.text());
  return (await response.json()) as Record<string, never>;
}

const { workerId } = await call("workers", { name: "wrong", agents: ["conformance"], slots: 2 });
for (;;) {
  const claimed = { claimId: crypto.randomUUID(), max: 5, waitS: 1 };
  const { attempts = [] } = (await call(`workers/${workerId}/claim`, claimed)) as {
    attempts?: { attemptToken: string; task: { message: string } }[];
  };
  for (const { attemptToken, task } of attempts) {
    const [word, first = "", second = ""] = task.message.split(" ");
    if (word === "append") for (const text of ["ran\n", "ran\n"]) appendFileSync(first, text);
    if (word === "sleep") await sleep(Number(first));
    if (word === "sleep" && isAbsolute(second)) appendFileSync(second, "slept\n");
    const result = word === "big" ? "x".repeat(Number(first)) : "wrong";
    const outcome = { attemptToken, outcome: "done", result };
    for (let sent = 0, recorded = false; sent < FINISHES && !recorded; sent++) {
      const answer = await call(`workers/${workerId}/finish`, { attempts: [outcome] });
      recorded = (answer as { attempts?: { recorded: boolean }[] }).attempts?.[0]?.recorded === true;
    }
  }
}

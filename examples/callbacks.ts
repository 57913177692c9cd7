// Webhooks: a receiver gets a callback when a task ends, and checks the signature of Rota.
import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { createRota } from "rota";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/** Whether Rota sent this, in the last five minutes. */
function isGenuine(headers: IncomingHttpHeaders, body: string): boolean {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = headers;
  const ageSec = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!(ageSec < 300)) return false;
  const key = Buffer.from(SECRET.replace("whsec_", ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest();
  return String(signatures)
    .split(" ")
    .map((signature) => Buffer.from(signature.replace("v1,", ""), "base64"))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
}

const seen = new Set<unknown>();
const receiver = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  if (!isGenuine(request.headers, body)) return response.writeHead(401).end();
  // What failed on its way back is sent again, under the same id.
  const isNew = !seen.has(request.headers["webhook-id"]);
  seen.add(request.headers["webhook-id"]);
  const { state, message, result, error } = JSON.parse(body);
  if (isNew) console.log(`${message}: ${state}, ${result ?? error}`);
  receiver.emit("called");
  return response.writeHead(204).end();
});
await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const callbackUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks/rota`;

const rota = await createRota({
  storage: "sqlite::memory:",
  // Only public hosts are called, and whatever is named here.
  webhooks: { allow: ["127.0.0.1"], secret: SECRET },
});
rota.agent("cook", async (task) => {
  if (task.message === "eggs") throw new Error("no eggs left");
  return `${task.message} is served`;
});
await rota.start();

for (const message of ["toast", "eggs"]) {
  const called = once(receiver, "called");
  await rota.tasks.submit({ agentId: "cook", message, callbackUrl });
  await called;
}

await rota.stop();
receiver.close();

// Prints:
// toast: done, toast is served
// eggs: failed, no eggs left

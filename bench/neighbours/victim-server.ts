import type { IncomingMessage } from "node:http";
import { serveOn, VICTIM_HOST } from "./loopback-server.ts";
import type { VictimWatch } from "./victim-watch.ts";

/** The part of a task that the victim looks at. */
interface SeenTask {
  readonly taskId: string;
  readonly payload: { readonly number: number } | { readonly scheduled: true };
  readonly completedAt?: string;
}

/** The victim's agent, which responds at once, and its receiver of callbacks. */
export async function openVictimServer(
  watch: VictimWatch,
): Promise<{ agentUrl: string; callbackUrl: string }> {
  const url = await serveOn(VICTIM_HOST, async (request, response) => {
    const { taskId, payload, completedAt } = JSON.parse(await bodyOf(request)) as SeenTask;
    if ("scheduled" in payload) watch.runStarted(taskId);
    else if (request.url === "/callback") watch.calledBack(payload.number, Date.parse(completedAt ?? ""));
    else watch.started(payload.number);
    response.writeHead(200, { "content-type": "application/json" }).end("null");
  });
  return { agentUrl: `${url}/work`, callbackUrl: `${url}/callback` };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
}

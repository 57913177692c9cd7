import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface AgentProgram {
  readonly url: string;
  /** The ids of the tasks that it received and has not responded to, in order. */
  readonly holding: () => readonly string[];
  /** Responds to all tasks that it holds, and to later ones at once. */
  release(): void;
}

/** A program that does an agent's work over HTTP: it holds every task until the test lets it respond. */
export async function startAgentProgram(): Promise<AgentProgram> {
  const held = new Map<ServerResponse, string>();
  let isReleased = false;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    held.set(response, JSON.parse(body).taskId);
    response.on("close", () => held.delete(response));
    if (isReleased) answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });

  function answer(response: ServerResponse): void {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ did: held.get(response) }));
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    holding: () => [...held.values()],
    release() {
      isReleased = true;
      for (const response of held.keys()) answer(response);
    },
  };
}

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Task } from "../../src/model/task.ts";
import type { Chance } from "../chaos/chance.ts";
import type { Durations } from "./durations.ts";

/** Everything that the server calls: the agents' program and the receiver of callbacks. */
export interface OutsideServers {
  readonly agentsUrl: string;
  readonly callbackUrl: string;
  /** Callbacks that were taken. */
  readonly callbacks: number;
  close(): void;
}

/** How the agents' program takes a call, and how often next to the others. */
const MANNERS = { answers: 90, fails: 6, refuses: 2, "takes its time": 2 } as const;
/** One of this many callbacks gets an error as its response, and must be retried. */
const CALLBACK_FAILS = 50;

/** `pickUp` is called with the time between submission and start of each task that carries its time of submission. */
export async function openOutsideServers(chance: Chance, pickUp: Durations): Promise<OutsideServers> {
  let callbacks = 0;

  async function work(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    const task = JSON.parse(await bodyOf(request)) as Task;
    const sentAt = task.metadata?.["sentAt"];
    if (typeof sentAt === "number" && task.retryCount === 0) pickUp.add(Date.now() - sentAt);
    const manner = task.metadata?.["slow"] === true ? "takes its time" : chance.weighted(MANNERS);
    await delay(manner === "takes its time" ? chance.between(300, 1_500) : chance.between(2, 30));
    if (manner === "fails") return { status: 500, body: "it failed" };
    if (manner === "refuses") return { status: 422, body: "never" };
    return { status: 200, body: { did: task.taskId, words: "lorem ipsum ".repeat(chance.between(1, 60)) } };
  }

  async function takeCallback(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    await bodyOf(request);
    if (chance.oneIn(CALLBACK_FAILS)) return { status: 500, body: "not now" };
    callbacks += 1;
    return { status: 200, body: "thanks" };
  }

  const server = createServer(async (request, response) => {
    try {
      const { status, body } = await (request.url === "/callback" ? takeCallback : work)(request);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    } catch {
      // The task was cancelled in the middle of it, and with it the call.
      response.destroy();
    }
  });
  const url = await listen(server);
  return {
    agentsUrl: `${url}/work`,
    callbackUrl: `${url}/callback`,
    get callbacks() {
      return callbacks;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
}

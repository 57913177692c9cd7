import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Task } from "../../src/model/task.ts";
import type { Chance } from "./chance.ts";
import { type Call, type Mutable, markOf } from "./history.ts";
import type { Outage } from "./plan.ts";

export interface AgentsProgram {
  /** Where a process is to call. */
  urlFor(process: string): string;
  readonly calls: readonly Call[];
  /** The next position in the order of what it sees. */
  readonly now: number;
  /** From now on all calls go wrong in the same way; null: each as chance has it. */
  outage(how: Outage | null): void;
  /** From now on it does nothing but its work. */
  behave(): void;
  close(): void;
}

/** How it takes a call, and how often next to the others. */
const MANNERS = {
  answers: 60,
  "takes its time": 12,
  "answers in words": 4,
  "says it is JSON": 3,
  lies: 3,
  "answers twice": 3,
  "answers a lot": 1,
  fails: 6,
  "is busy": 2,
  refuses: 2,
  hangs: 2,
  "hangs up": 2,
  "hangs up in the middle": 2,
} as const;

type Manner = keyof typeof MANNERS;

/** The program that does the agents' work, over HTTP, and not always well. It writes down every call. */
export async function startAgentsProgram(chance: Chance): Promise<AgentsProgram> {
  const calls: Mutable<Call>[] = [];
  let order = 0;
  let how: Outage | null = null;
  let behaves = false;

  const manner = (): Manner => {
    if (behaves) return "answers";
    return how ?? chance.weighted(MANNERS);
  };

  const ownTime = (chosen: Manner): number =>
    chosen === "takes its time" ? chance.between(200, 900) : chance.between(2, 80);

  const server = createServer(async (request, response) => {
    try {
      const task = JSON.parse(await bodyOf(request)) as Task;
      const call = begin(
        task,
        new URL(request.url ?? "/", "http://program").searchParams.get("process") ?? "",
      );
      response.on("close", () => end(call));
      await take(call, manner(), markOf(task).takesMs ?? null, response);
    } catch {
      // The caller was killed in the middle of it.
      response.destroy();
    }
  });

  function begin(task: Task, process: string): Mutable<Call> {
    const { number: attempt = 0, node = "" } = task.attempts.at(-1) ?? {};
    order += 1;
    const dependencies = task.dependencies ?? [];
    const call = {
      taskId: task.taskId,
      attempt,
      node,
      process,
      began: order,
      ended: null,
      answer: null,
      dependencies,
    };
    calls.push(call);
    return call;
  }

  function end(call: Mutable<Call>): void {
    if (call.ended !== null) return;
    order += 1;
    call.ended = order;
  }

  async function take(
    call: Mutable<Call>,
    chosen: Manner,
    takesMs: number | null,
    response: ServerResponse,
  ): Promise<void> {
    const longMs = behaves ? 0 : (takesMs ?? ownTime(chosen));
    if (chosen === "hangs") return;
    await delay(longMs);
    // The caller has gone meanwhile.
    if (call.ended !== null) return;
    end(call);
    switch (chosen) {
      case "answers":
      case "takes its time":
        return json(call, response, { did: call.taskId, call: call.began });
      case "lies":
        return json(call, response, { did: calls[0]?.taskId, call: -1 });
      case "answers in words":
        return text(call, response, "text/plain", `did ${call.taskId}`);
      case "says it is JSON":
        return text(call, response, "application/json", `{"did": ${call.taskId}`);
      case "answers a lot":
        return text(call, response, "text/plain", "did a lot. ".repeat(30_000));
      case "answers twice": {
        call.answer = { result: { did: call.taskId, call: call.began } };
        const once = raw(call.answer.result);
        response.socket?.end(once + raw({ did: "something else" }));
        return;
      }
      case "fails":
        return void response.writeHead(500).end("it failed");
      case "is busy":
        return void response.writeHead(503, { "retry-after": "0" }).end("busy");
      case "refuses":
        return void response.writeHead(422).end("never");
      case "hangs up":
        return void response.destroy();
      case "hangs up in the middle":
        response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
        response.write('{"did": ', () => response.destroy());
        return;
    }
  }

  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    urlFor: (process) => `http://127.0.0.1:${port}/?process=${process}`,
    calls,
    get now() {
      return order;
    },
    outage(next) {
      how = next;
    },
    behave() {
      behaves = true;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  return body;
}

function json(call: Mutable<Call>, response: ServerResponse, result: unknown): void {
  call.answer = { result };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(result));
}

function text(call: Mutable<Call>, response: ServerResponse, type: string, said: string): void {
  call.answer = { result: said };
  response.setHeader("content-type", type);
  response.end(said);
}

function raw(result: unknown): string {
  const body = JSON.stringify(result);
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

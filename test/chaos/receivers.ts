import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import type { Chance } from "./chance.ts";
import type { Callback, Mutable } from "./history.ts";

/** How receivers take it when they are called back, and how often next to the others. */
const RECEIVERS = {
  steady: { answers: 20, "answers twice": 1 },
  moody: {
    answers: 40,
    "takes its time": 8,
    "answers twice": 8,
    "answers a lot": 2,
    fails: 16,
    "is busy": 5,
    redirects: 3,
    "is gone": 2,
    "hangs up": 10,
    "hangs up in the middle": 4,
  },
  silent: { answers: 2, hangs: 1 },
} as const satisfies Readonly<Record<string, Partial<Record<Manner, number>>>>;

type Manner =
  | "answers"
  | "takes its time"
  | "answers twice"
  | "answers a lot"
  | "fails"
  | "is busy"
  | "redirects"
  | "is gone"
  | "hangs up"
  | "hangs up in the middle"
  | "hangs";

type ReceiverName = keyof typeof RECEIVERS;

/** Most callbacks go to hosts that seldom fail: a retry takes long. */
const SHARES: Readonly<Record<ReceiverName, number>> = { steady: 6, moody: 6, silent: 1 };

/** The one that hangs is a host of its own: the others should not have to wait for it. */
const HOSTS: Readonly<Record<ReceiverName, string>> = {
  steady: "127.0.0.1",
  moody: "127.0.0.1",
  silent: "localhost",
};

export interface Receivers {
  /** A URL that no other delivery of this run uses. */
  newUrl(chance: Chance): string;
  readonly callbacks: readonly Callback[];
  /** The next number in the order of requests. */
  readonly now: number;
  /** The secrets by which receivers verify the callbacks of a tenant. */
  trust(tenantId: string, secret: string): void;
  /** From now on they respond, and hanging requests are closed. */
  behave(): void;
  close(): void;
}

/**
 * Receivers of callbacks of tasks and batches, which do not always accept them. They record every request.
 * `patienceTries`: how many tries of a callback may go wrong.
 */
export async function startReceivers(chance: Chance, patienceTries: number): Promise<Receivers> {
  const webhooks = new Map<unknown, Webhook>();
  const callbacks: Mutable<Callback>[] = [];
  const hanging = new Set<ServerResponse>();
  let behaves = false;
  let urls = 0;

  function manner(name: ReceiverName, deliveryId: string): Manner {
    const tries = callbacks.filter((callback) => callback.deliveryId === deliveryId).length;
    if (behaves || tries > patienceTries) return "answers";
    return chance.weighted<Manner>(RECEIVERS[name] as Record<Manner, number>);
  }

  async function receive(name: ReceiverName, request: IncomingMessage, response: ServerResponse) {
    const text = await bodyOf(request);
    const { headers } = request;
    const callback: Mutable<Callback> = {
      deliveryId: String(headers["webhook-id"]),
      url: `http://${headers.host}${request.url}`,
      event: String(headers["x-pinchtab-event"]),
      taskId: headers["x-pinchtab-task-id"]?.toString() ?? null,
      genuine: isGenuine(text, headers),
      body: JSON.parse(text),
      answered: null,
    };
    callbacks.push(callback);
    await answer(callback, manner(name, callback.deliveryId), response);
  }

  function isGenuine(text: string, headers: IncomingMessage["headers"]): boolean {
    try {
      const webhook = webhooks.get(JSON.parse(text).tenantId);
      webhook?.verify(text, headers as Record<string, string>);
      return webhook !== undefined;
    } catch {
      return false;
    }
  }

  async function answer(callback: Mutable<Callback>, chosen: Manner, response: ServerResponse) {
    const say = (status: number, body = "", headers = {}) => {
      callback.answered = status;
      response.writeHead(status, headers).end(body);
    };
    switch (chosen) {
      case "takes its time":
        await delay(chance.between(100, 600));
        return say(200);
      case "answers":
        return say(200, "thank you");
      case "answers a lot":
        return say(200, "thank you. ".repeat(30_000));
      case "answers twice": {
        callback.answered = 204;
        const once = "HTTP/1.1 204 No Content\r\n\r\n";
        return void response.socket?.write(once + once);
      }
      case "fails":
        return say(500, "it failed");
      case "is busy":
        return say(503, "busy", { "retry-after": "1" });
      case "redirects":
        return say(307, "", { location: "/elsewhere" });
      case "is gone":
        return say(410);
      case "hangs up":
        return void response.destroy();
      case "hangs up in the middle":
        callback.answered = 200;
        response.writeHead(200, { "content-length": "1000" });
        return void response.write("thank", () => response.destroy());
      case "hangs":
        hanging.add(response);
    }
  }

  const servers: Server[] = [];
  const ports = new Map<ReceiverName, number>();
  for (const name of Object.keys(RECEIVERS) as ReceiverName[]) {
    const server = createServer((request, response) => {
      // The server that called was killed meanwhile.
      receive(name, request, response).catch(() => response.destroy());
    });
    server.listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    servers.push(server);
    ports.set(name, (server.address() as AddressInfo).port);
  }

  return {
    callbacks,
    newUrl(own) {
      urls += 1;
      const name = own.weighted(SHARES);
      return `http://${HOSTS[name]}:${ports.get(name)}/told/${urls}`;
    },
    get now() {
      return callbacks.length;
    },
    trust(tenantId, secret) {
      webhooks.set(tenantId, new Webhook(secret));
    },
    behave() {
      behaves = true;
      for (const response of hanging) response.destroy();
    },
    close() {
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  return body;
}

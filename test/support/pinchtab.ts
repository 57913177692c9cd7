import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { Latch } from "../../src/testing/signals.ts";
import { serve } from "./http-server.ts";

/** A response other than that of a PinchTab server. */
export type Answer = (response: ServerResponse) => void;

/** A request that arrived. */
export interface Seen {
  /** Which part received it: `server`, or the id of an instance. */
  readonly by: string;
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Opens when its connection is closed before the response. */
  readonly dropped: Promise<void>;
}

/**
 * Something that behaves like PinchTab: a server that knows its instances and their tabs, and instances, each on a port
 * of its own, that do actions in the tabs they have. All of it ends with the test.
 */
export class PinchTab {
  /** Every request, in the order they arrived. */
  readonly seen: Seen[] = [];
  /** Responses of the server that replace its own, by path. */
  readonly answers = new Map<string, Answer>();
  /** Whether the server knows `?fresh=1`. */
  looksAnew = true;
  /** A response of instances to an action that replaces their own. */
  onAction: Answer | null = null;
  #url = "";
  readonly #ports = new Map<string, number>();
  readonly #tabs = new Map<string, string>();
  /** The tabs that the server returns until a request has `fresh=1`; null: it reads them each time. */
  #remembered: object[] | null = null;

  static async start(): Promise<PinchTab> {
    const pinchTab = new PinchTab();
    pinchTab.#url = await serve((request, response, body) => pinchTab.#serve(request, response, body));
    return pinchTab;
  }

  get url(): string {
    return this.#url;
  }

  /** Starts an instance. Returns its URL. */
  async startInstance(id: string): Promise<string> {
    const url = await serve((request, response, body) => this.#act(id, request, response, body));
    this.#ports.set(id, Number(new URL(url).port));
    return url;
  }

  /** The server still names it, but at a port where no server listens any more. */
  async killInstance(id: string): Promise<void> {
    this.#ports.set(id, Number(new URL(await nowhere()).port));
  }

  forgetInstance(id: string): void {
    this.#ports.delete(id);
  }

  /** Opens a tab in an instance, or moves it there. */
  openTab(tabId: string, instance: string): void {
    this.#tabs.set(tabId, instance);
  }

  /** From now on the server returns the tabs that there are now, unless a request has `fresh=1`. */
  rememberTabs(): void {
    this.#remembered = this.#listTabs();
  }

  closeTab(tabId: string): void {
    this.#tabs.delete(tabId);
  }

  /** The requests that one of them got. */
  seenBy(who: string): Seen[] {
    return this.seen.filter(({ by }) => by === who);
  }

  #serve(request: IncomingMessage, response: ServerResponse, body: string): void {
    this.#note("server", request, response, body);
    const [path = "", query] = (request.url ?? "").split("?");
    const isFresh = query === "fresh=1";
    if (isFresh && this.looksAnew) this.#remembered = null;
    const answer = this.answers.get(path);
    if (answer !== undefined) answer(response);
    else if (isFresh && !this.looksAnew) json(response, 400, { error: "unknown parameter" });
    else if (path === "/instances/tabs") json(response, 200, this.#remembered ?? this.#listTabs());
    else if (path === "/instances") json(response, 200, this.#listInstances());
    else json(response, 404, { error: "not found" });
  }

  #listTabs(): object[] {
    return [...this.#tabs].map(([id, instanceId]) => ({ id, instanceId, url: "https://example.com/" }));
  }

  #listInstances(): object[] {
    return [...this.#ports].map(([id, port]) => ({ id, port: String(port), status: "running" }));
  }

  #act(id: string, request: IncomingMessage, response: ServerResponse, body: string): void {
    this.#note(id, request, response, body);
    const tabId = /^\/tabs\/([^/]+)\/action$/.exec(request.url ?? "")?.[1];
    if (this.onAction !== null) this.onAction(response);
    else if (tabId !== undefined && this.#tabs.get(decodeURIComponent(tabId)) === id)
      json(response, 200, { success: true, by: id });
    else json(response, 404, { error: "tab not found" });
  }

  #note(by: string, request: IncomingMessage, response: ServerResponse, body: string): void {
    const dropped = new Latch();
    response.on("close", () => {
      if (!response.writableFinished) dropped.open();
    });
    const { method, url: path, headers } = request;
    this.seen.push({ by, method, path, headers, body, dropped: dropped.opened });
  }
}

export function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** Sends the same again and again as long as the client reads. */
export function endless(text: string): Answer {
  return (response) => {
    const more = () => {
      while (!response.destroyed && response.write(text));
      response.once("drain", more);
    };
    more();
  };
}

/** Never says a word. */
export const hang: Answer = () => {};

/** Begins a response and breaks it off. */
export const breakOff: Answer = (response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
  response.write('{"success":', () => response.destroy());
};

/** A URL of this machine where no server listens. */
export async function nowhere(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";

/** A request without a response for so long counts as unanswered. */
const PATIENCE_MS = 30_000;

export interface Called {
  /** 0: there was no response. */
  readonly status: number;
  readonly body: string;
}

/** Requests to the node with one key, over so many connections. */
export class HttpCaller {
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ url, key, connections }: { url: string; key: string; connections: number }) {
    this.#pool = new Pool(url, {
      connections,
      headersTimeout: PATIENCE_MS,
      bodyTimeout: PATIENCE_MS,
    });
    this.#headers = { authorization: `Bearer ${key}` };
  }

  get(path: string): Promise<Called> {
    return this.#call({ method: "GET", path, headers: this.#headers });
  }

  /** `body`: text is sent as it is, anything else as JSON. */
  post(path: string, body: unknown): Promise<Called> {
    return this.#call({
      method: "POST",
      path,
      headers: { ...this.#headers, "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  }

  /** Posts until the node takes it, and returns what it responded. */
  async mustPost<Answer>(path: string, body: unknown): Promise<Answer> {
    return this.#must(`POST ${path}`, () => this.post(path, body));
  }

  async mustGet<Answer>(path: string): Promise<Answer> {
    return this.#must(`GET ${path}`, () => this.get(path));
  }

  /** Reads a stream of all events from the first on, for so long. */
  async replayEvents(forMs: number): Promise<Called> {
    try {
      const { statusCode, body } = await this.#pool.request({
        method: "GET",
        path: "/tasks/events",
        headers: { ...this.#headers, "last-event-id": "0" },
      });
      const enough = setTimeout(() => body.destroy(), forMs);
      try {
        for await (const _ of body);
      } catch {
        // We left it ourselves.
      }
      clearTimeout(enough);
      return { status: statusCode, body: "" };
    } catch {
      return UNANSWERED;
    }
  }

  async #call(options: Parameters<Pool["request"]>[0]): Promise<Called> {
    try {
      const { statusCode, body } = await this.#pool.request(options);
      return { status: statusCode, body: await body.text() };
    } catch {
      return UNANSWERED;
    }
  }

  async #must<Answer>(what: string, call: () => Promise<Called>): Promise<Answer> {
    const giveUpAt = performance.now() + MUST_MS_MAX;
    let last = UNANSWERED;
    while (performance.now() < giveUpAt) {
      last = await call();
      if (isAccepted(last)) return JSON.parse(last.body) as Answer;
      await delay(TRY_AGAIN_MS);
    }
    throw new Error(`${what}: ${last.status} ${last.body.slice(0, 500)}`);
  }
}

const MUST_MS_MAX = 60_000;
const TRY_AGAIN_MS = 500;
const UNANSWERED: Called = { status: 0, body: "" };

export function isAccepted({ status }: Called): boolean {
  return status >= 200 && status < 300;
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect } from "vitest";

const PATIENCE_MS = 30_000;

/**
 * One page of a Firefox as distributions ship it, over WebDriver BiDi. playwright-core drives only its own build of Firefox, and the
 * newest ones, so this speaks the few commands that a smoke test needs.
 */
export class FirefoxPage {
  readonly #process: ChildProcess;
  readonly #profile: string;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<
    number,
    (answer: { error?: string; message?: string; result?: unknown }) => void
  >();
  #context = "";
  #commands = 0;

  private constructor(process: ChildProcess, profile: string, socket: WebSocket) {
    this.#process = process;
    this.#profile = profile;
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const answer = JSON.parse(String(data));
      this.#waiting.get(answer.id)?.(answer);
    });
  }

  static async launch(path: string): Promise<FirefoxPage> {
    const profile = await mkdtemp(join(tmpdir(), "rota-firefox-"));
    const args = ["--headless", "--remote-debugging-port=0", "--profile", profile];
    const process = spawn(path, args, { stdio: ["ignore", "ignore", "pipe"] });
    const socket = new WebSocket(`${await addressOf(process)}/session`);
    await once(socket, "open");
    const page = new FirefoxPage(process, profile, socket);
    await page.#send("session.new", { capabilities: {} });
    const { contexts } = (await page.#send("browsingContext.getTree", {})) as {
      contexts: { context: string }[];
    };
    page.#context = contexts[0]?.context ?? "";
    return page;
  }

  async goto(url: string): Promise<void> {
    await this.#send("browsingContext.navigate", { context: this.#context, url, wait: "complete" });
  }

  /** The value of an expression, which must be text, a number or a truth. */
  async evaluate(expression: string): Promise<unknown> {
    const target = { context: this.#context };
    const answer = await this.#send("script.evaluate", { expression, target, awaitPromise: true });
    return (answer as { result: { value?: unknown } }).result.value;
  }

  /** Waits for an element, the first of `selector` that contains `text`, and clicks it. */
  async click(selector: string, text = ""): Promise<void> {
    const found = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((each) => each.textContent.includes(${JSON.stringify(text)}))`;
    await this.waitFor(`${found} !== undefined`);
    await this.evaluate(`${found}.click()`);
  }

  /** Types into an element as a keyboard does. */
  async type(selector: string, text: string): Promise<void> {
    const found = `document.querySelector(${JSON.stringify(selector)})`;
    await this.waitFor(`${found} !== null`);
    await this.evaluate(`${found}.focus()`);
    const actions = [...text].flatMap((value) => [
      { type: "keyDown", value },
      { type: "keyUp", value },
    ]);
    await this.#send("input.performActions", {
      context: this.#context,
      actions: [{ type: "key", id: "keys", actions }],
    });
  }

  async waitFor(expression: string): Promise<void> {
    await expect
      .poll(() => this.evaluate(expression), { timeout: PATIENCE_MS, message: expression })
      .toBe(true);
  }

  async waitForText(selector: string, text: string): Promise<void> {
    await this.waitFor(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].some((each) => each.textContent.includes(${JSON.stringify(text)}))`,
    );
  }

  async close(): Promise<void> {
    this.#socket.close();
    const ended = once(this.#process, "exit");
    this.#process.kill();
    await ended;
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }

  #send(method: string, params: Record<string, unknown>): Promise<unknown> {
    const id = ++this.#commands;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ error, message, result }) => {
        this.#waiting.delete(id);
        if (error === undefined) resolve(result);
        else reject(new Error(`${method}: ${error}: ${message}`));
      });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }
}

/** Firefox says where it listens once it does. */
async function addressOf(process: ChildProcess): Promise<string> {
  if (process.stderr === null) throw new Error("the output of Firefox is not read");
  for await (const line of createInterface(process.stderr)) {
    const [, address] = /WebDriver BiDi listening on (ws:\S+)/.exec(line) ?? [];
    if (address !== undefined) {
      process.stderr.resume();
      return address;
    }
  }
  throw new Error("Firefox ended before it listened");
}

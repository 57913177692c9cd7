import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Answer, NodeSetup, Word } from "./node-program.ts";

const PROGRAM = join(import.meta.dirname, "node-program.ts");

export type Drained = Extract<Answer, { said: "drained" }>;

/** A node in a process of its own. */
export class NodeProcess {
  readonly #child: ChildProcess;
  /** Tasks that it has started, as far as it has reported. */
  started = 0;
  onStarted = (): void => {};

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", (answer: Answer) => {
      if (answer.said !== "started") return;
      this.started = answer.tasks;
      this.onStarted();
    });
  }

  /** Resolves once it is connected; it runs nothing yet. */
  static async open(url: string, setup: NodeSetup): Promise<NodeProcess> {
    const child = fork(PROGRAM, [url, JSON.stringify(setup)]);
    const node = new NodeProcess(child);
    await node.#receive("ready");
    return node;
  }

  start(): void {
    this.#say({ say: "start" });
  }

  /** What it reports after draining counts from here. */
  measure(): void {
    this.#say({ say: "measure" });
  }

  /** Ends what runs. It stays connected: what the server did for it can be looked up no longer once it is not. */
  async drain(): Promise<Drained> {
    const drained = this.#receive("drained");
    this.#say({ say: "drain" });
    return (await drained) as Drained;
  }

  async leave(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "close");
    this.#say({ say: "leave" });
    await ended;
  }

  #say(word: Word): void {
    this.#child.send(word);
  }

  async #receive(said: Answer["said"]): Promise<Answer> {
    const stop = new AbortController();
    const ended = once(this.#child, "close", { signal: stop.signal }).then(() => {
      throw new Error(`a node ended before it was ${said}`);
    });
    const answered = new Promise<Answer>((resolve) => {
      this.#child.on("message", (answer: Answer) => {
        if (answer.said === said) resolve(answer);
      });
    });
    try {
      return await Promise.race([answered, ended]);
    } finally {
      ended.catch(() => {});
      stop.abort();
    }
  }
}

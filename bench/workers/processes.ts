import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { ServerAnswer, ServerWord } from "./server-program.ts";
import type { WorkerAnswer, WorkerSetup, WorkerWord } from "./worker-program.ts";

/** A program that is sent words, and answers. */
class Program<Word extends { readonly say: string }, Answer extends { readonly said: string }> {
  readonly #child: ChildProcess;

  constructor(file: string, args: readonly string[]) {
    this.#child = fork(join(import.meta.dirname, file), args);
  }

  onAnswer(listener: (answer: Answer) => void): void {
    this.#child.on("message", listener);
  }

  say(word: Word): void {
    this.#child.send(word);
  }

  /** Resolves with the next answer of this kind, to `word` if one is given. */
  async answer<Said extends Answer["said"]>(
    said: Said,
    word?: Word,
  ): Promise<Extract<Answer, { readonly said: Said }>> {
    const stop = new AbortController();
    const ended = once(this.#child, "close", { signal: stop.signal }).then(() => {
      throw new Error(`a process ended before it answered "${said}"`);
    });
    const answered = new Promise<Extract<Answer, { readonly said: Said }>>((resolve) => {
      const listener = (answer: Answer) => {
        if (answer.said !== said) return;
        this.#child.off("message", listener);
        resolve(answer as Extract<Answer, { readonly said: Said }>);
      };
      this.#child.on("message", listener);
    });
    if (word !== undefined) this.say(word);
    try {
      return await Promise.race([answered, ended]);
    } finally {
      ended.catch(() => {});
      stop.abort();
    }
  }

  async leave(word: Word): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "close");
    this.say(word);
    await ended;
  }
}

export class ServerProcess {
  readonly url: string;
  readonly #program: Program<ServerWord, ServerAnswer>;

  private constructor(program: Program<ServerWord, ServerAnswer>, url: string) {
    this.#program = program;
    this.url = url;
  }

  static async open(storage: string, { slots }: { readonly slots: number }): Promise<ServerProcess> {
    const program = new Program<ServerWord, ServerAnswer>("server-program.ts", [storage, String(slots)]);
    const { url } = await program.answer("ready");
    return new ServerProcess(program, url);
  }

  async load(tasks: number): Promise<void> {
    await this.#program.answer("loaded", { say: "load", tasks });
  }

  async done(): Promise<number> {
    return (await this.#program.answer("counted", { say: "count" })).done;
  }

  cost(): Promise<{ readonly cpuMs: number; readonly statements: number }> {
    return this.#program.answer("cost", { say: "cost" });
  }

  leave(): Promise<void> {
    return this.#program.leave({ say: "leave" });
  }
}

export class WorkersProcess {
  /** As far as it has reported. */
  ran = 0;
  firstAt = Number.POSITIVE_INFINITY;
  onRan = (): void => {};
  readonly #program: Program<WorkerWord, WorkerAnswer>;

  private constructor(program: Program<WorkerWord, WorkerAnswer>) {
    this.#program = program;
    program.onAnswer((answer) => {
      if (answer.said !== "ran") return;
      this.ran = answer.tasks;
      this.firstAt = answer.firstAt;
      this.onRan();
    });
  }

  static async open(setup: WorkerSetup): Promise<WorkersProcess> {
    const program = new Program<WorkerWord, WorkerAnswer>("worker-program.ts", [JSON.stringify(setup)]);
    await program.answer("ready");
    return new WorkersProcess(program);
  }

  async start(): Promise<void> {
    await this.#program.answer("started", { say: "start" });
  }

  cost(): Promise<{ readonly cpuMs: number }> {
    return this.#program.answer("cost", { say: "cost" });
  }

  leave(): Promise<void> {
    return this.#program.leave({ say: "leave" });
  }
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { WEBHOOK_SECRET } from "./settings.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const MAIN = join(ROOT, "src", "cli", "main.ts");
/** Makes SIGUSR2 fill the database; see there. */
const FULL_DATABASE = join(import.meta.dirname, "full-database.ts");

/** Makes SIGWINCH set the clock; see there. */
const JUMPING_CLOCK = join(import.meta.dirname, "jumping-clock.ts");

/** A database that is away for longer than this at a start is not coming back. */
const START_PATIENCE_MS = 60_000;

export interface RotaProcessParams {
  readonly name: string;
  readonly port: number;
  readonly storage: string;
  readonly configFile: string;
  readonly folder: string;
}

/** One node: a `rota serve`, started again after each end, as a service manager would. */
export class RotaProcess {
  readonly name: string;
  readonly url: string;
  readonly #params: RotaProcessParams;
  #child: ChildProcess | null = null;

  constructor(params: RotaProcessParams) {
    this.name = params.name;
    this.url = `http://127.0.0.1:${params.port}`;
    this.#params = params;
  }

  /** Whether it is there and has not ended by itself. */
  get alive(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves once it takes requests. While its database is away it ends by itself, and is started again. */
  async start(): Promise<void> {
    const giveUpAt = performance.now() + START_PATIENCE_MS;
    while (!(await this.#startOnce())) {
      if (performance.now() > giveUpAt) throw new Error(`${this.name} does not start: see ${this.#logFile}`);
      await delay(200);
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** `kill -9`, also of one that sleeps. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === null || !this.alive) return;
    const ended = once(child, "close");
    child.kill("SIGKILL");
    await ended;
  }

  get #logFile(): string {
    return join(this.#params.folder, `${this.name}.log`);
  }

  async #startOnce(): Promise<boolean> {
    const { port, storage, configFile, folder } = this.#params;
    // What the developer's own shell sets must not change what is tested.
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(?:ROTA|npm)_|^NODE_OPTIONS$/.test(name),
    );
    const args = ["serve", "--port", String(port), "--storage", storage, "--config", configFile];
    const child = spawn(
      process.execPath,
      ["--import", FULL_DATABASE, "--import", JUMPING_CLOCK, MAIN, ...args],
      {
        cwd: folder,
        env: { ...Object.fromEntries(inherited), ROTA_WEBHOOK_SECRET: WEBHOOK_SECRET },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    this.#child = child;
    // Whatever ends this program ends what it has started.
    const end = () => child.kill("SIGKILL");
    process.once("exit", end);
    child.once("close", () => process.off("exit", end));
    child.stderr?.pipe(createWriteStream(this.#logFile, { flags: "a" }));
    // A start that is killed from outside is over, too.
    return Promise.race([
      once(child.stdout as NodeJS.ReadableStream, "data").then(() => true),
      once(child, "close").then(() => false),
    ]);
  }
}

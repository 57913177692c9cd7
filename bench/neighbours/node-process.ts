import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const MAIN = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");
const LOOK_EVERY_MS = 100;
/** A node that dies over and over is not started for ever. */
const STARTS_MAX = 10;
/** One that has not begun to serve by then does not. */
const START_MS_MAX = 60_000;

export interface NodeParams {
  readonly folder: string;
  readonly port: number;
  readonly storage: string;
  readonly configFile: string;
}

/** A `rota serve`, started again whenever it dies, as an operator would. */
export class NodeProcess {
  readonly url: string;
  readonly #params: NodeParams;
  #child: ChildProcess | null = null;
  #stopped = false;
  #starts = 0;
  #watching: Promise<void> = Promise.resolve();
  /** How often it ended by itself. */
  deaths = 0;
  /** The most memory it has taken; null where the system does not say. */
  peakRssMib: number | null = null;

  constructor(params: NodeParams) {
    this.#params = params;
    this.url = `http://127.0.0.1:${params.port}`;
  }

  /** Resolves once it serves. */
  async start(): Promise<void> {
    if (!(await this.#startOnce())) throw new Error(`the node did not start: see ${this.#logFile}`);
    this.#watching = this.#watch();
  }

  /** `kill -9`; it is started again, and this is not counted as a death. Resolves once it serves. */
  async killAndRestart(): Promise<void> {
    const child = this.#child;
    if (child === null || !isAlive(child)) return;
    // The watch counts every end.
    this.deaths -= 1;
    child.kill("SIGKILL");
    while (this.#child === child && !this.#stopped) await delay(LOOK_EVERY_MS);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const child = this.#child;
    if (child !== null && isAlive(child)) {
      const ended = once(child, "close");
      child.kill("SIGKILL");
      await ended;
    }
    await this.#watching;
  }

  get #logFile(): string {
    return join(this.#params.folder, "node.log");
  }

  /** Looks at its memory until it is stopped, and starts it again when it has died. */
  async #watch(): Promise<void> {
    while (!this.#stopped) {
      await this.#lookAtMemory();
      if (this.#child !== null && !isAlive(this.#child)) {
        this.deaths += 1;
        if (this.#starts < STARTS_MAX) await this.#startOnce();
        else this.#stopped = true;
      }
      await delay(LOOK_EVERY_MS);
    }
  }

  /** The kernel keeps the peak, so that none is missed between two looks. */
  async #lookAtMemory(): Promise<void> {
    const status = await readFile(`/proc/${this.#child?.pid}/status`, "utf8").catch(() => "");
    const kib = /^VmHWM:\s+(\d+) kB/m.exec(status)?.[1];
    if (kib !== undefined) this.peakRssMib = Math.max(this.peakRssMib ?? 0, Number(kib) / 1_024);
  }

  async #startOnce(): Promise<boolean> {
    const { folder, port, storage, configFile } = this.#params;
    this.#starts += 1;
    // What the developer's own shell sets must not change what is measured.
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(?:ROTA|npm)_|^NODE_OPTIONS$/.test(name),
    );
    const args = ["serve", "--port", String(port), "--storage", storage, "--config", configFile];
    const child = spawn(process.execPath, [MAIN, ...args], {
      cwd: folder,
      env: Object.fromEntries(inherited),
      stdio: ["ignore", "pipe", "pipe"],
    });
    // Whatever ends this program ends the node.
    const end = () => child.kill("SIGKILL");
    process.once("exit", end);
    child.once("close", () => process.off("exit", end));
    child.stderr.pipe(createWriteStream(this.#logFile, { flags: "a" }));
    const serves = await Promise.race([
      once(child.stdout, "data").then(() => true),
      once(child, "close").then(() => false),
      delay(START_MS_MAX, false, { ref: false }),
    ]);
    child.stdout.resume();
    this.#child = child;
    return serves;
  }
}

function isAlive({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

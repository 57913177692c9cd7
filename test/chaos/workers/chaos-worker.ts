import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { PYTHON } from "../../support/python.ts";
import { REMOTE_AGENT, WORKER_SLOTS } from "../settings.ts";

const ROOT = join(import.meta.dirname, "..", "..", "..");

export interface ChaosWorkerParams {
  readonly name: string;
  /** The language of the worker; where there is no Python, all are in TypeScript. */
  readonly language: "typescript" | "python";
  /** Where the worker believes Rota to be. */
  readonly url: string;
  readonly programUrl: string;
  readonly folder: string;
}

/** One worker process, started again after each end. */
export class ChaosWorker {
  readonly name: string;
  readonly #params: ChaosWorkerParams;
  #key = "";
  #child: ChildProcess | null = null;

  constructor(params: ChaosWorkerParams) {
    this.name = params.name;
    this.#params = params;
  }

  start(key = this.#key): void {
    this.#key = key;
    const child = this.#spawn();
    this.#child = child;
    const end = () => child.kill("SIGKILL");
    process.once("exit", end);
    child.once("close", () => process.off("exit", end));
    const log = createWriteStream(join(this.#params.folder, `${this.name}.log`), { flags: "a" });
    for (const stream of [child.stdout, child.stderr]) stream?.pipe(log);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** `kill -9`, also of one that is stopped. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "close");
    child.kill("SIGKILL");
    await ended;
  }

  #spawn(): ChildProcess {
    const { name, language, url, programUrl, folder } = this.#params;
    const args = [url, this.#key, name, programUrl];
    const options: SpawnOptions = { cwd: folder, stdio: ["ignore", "pipe", "pipe"] };
    if (language === "typescript" || PYTHON === null)
      return spawn(process.execPath, [join(import.meta.dirname, "worker-program.ts"), ...args], options);
    const program = join(import.meta.dirname, "worker_program.py");
    const env = { ...process.env, PYTHONPATH: join(ROOT, "clients", "python", "src") };
    return spawn(PYTHON, [program, ...args, REMOTE_AGENT, String(WORKER_SLOTS)], { ...options, env });
  }
}

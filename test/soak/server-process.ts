import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const MAIN = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");
const REPORT_MEMORY = join(import.meta.dirname, "report-memory.ts");

export interface Footprint {
  /** Bytes that the process takes. */
  readonly rss: number;
  /** Bytes in JavaScript's heap that are not garbage. */
  readonly heap: number;
  /** Files and sockets; null where the system does not report them. */
  readonly handles: number | null;
}

/** A `rota serve` in a process of its own. */
export class ServerProcess {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** Resolves once it takes requests. */
  static async start(params: {
    folder: string;
    storage: string;
    configFile: string;
  }): Promise<ServerProcess> {
    const { folder, storage, configFile } = params;
    // What the developer's own shell sets must not change what is tested.
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(?:ROTA|npm)_|^NODE_OPTIONS$/.test(name),
    );
    const args = ["serve", "--port", "0", "--storage", storage, "--config", configFile];
    const child = spawn(process.execPath, ["--expose-gc", "--import", REPORT_MEMORY, MAIN, ...args], {
      cwd: folder,
      env: Object.fromEntries(inherited),
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    const logFile = join(folder, "server.log");
    child.stderr?.pipe(createWriteStream(logFile));
    const said = await Promise.race([
      once(child.stdout as NodeJS.ReadableStream, "data").then(([chunk]) => String(chunk)),
      once(child, "close").then(() => ""),
    ]);
    const url = /http:\/\/\S+/.exec(said)?.[0];
    if (url === undefined)
      throw new Error(`the server did not start: ${await readFile(logFile, "utf8").catch(() => said)}`);
    return new ServerProcess(child, url);
  }

  async footprint(metrics: string): Promise<Footprint> {
    const rss = Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1]);
    const answered = once(this.#child, "message");
    this.#child.send("how much is in use?");
    const [heap] = await answered;
    return { rss, heap, handles: await this.#handles() };
  }

  /** Ends it as an operator would. Returns whether it ended well. */
  async stop(): Promise<boolean> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return false;
    const closed = once(this.#child, "close");
    this.#child.kill("SIGTERM");
    const [code] = await closed;
    return code === 0;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  async #handles(): Promise<number | null> {
    try {
      return (await readdir(`/proc/${this.#child.pid}/fd`)).length;
    } catch {
      return null;
    }
  }
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { eventually, newFolder } from "../end-to-end/server-process.ts";
import { isSameShape } from "./same-shape.ts";
import type { Step } from "./steps.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const MAIN = join(ROOT, "src", "cli", "main.ts");
const FROM_SOURCE = join(ROOT, "scripts", "from-source.ts");

/** The ports that guides name. Each test has others. */
const PORTS = [7682, 7683, 9100, 9200, 9867];
const [RUN_MS, READY_MS] = [90_000, 20_000];

interface Terminal {
  readonly ended: Promise<unknown>;
  signal(name: NodeJS.Signals): void;
}

/** Follows the steps of a guide in an empty folder, with `rota` on the PATH, as a reader does who has installed the package. */
export class Reader {
  readonly #folder = newFolder();
  readonly #bin = newFolder();
  readonly #terminals = new Map<string, Terminal>();
  readonly #replaced: ReadonlyMap<string, string>;
  readonly #environment: Readonly<Record<string, string>>;

  private constructor(replaced: ReadonlyMap<string, string>) {
    this.#replaced = replaced;
    const port = replaced.get("7682") as string;
    const inherited = Object.entries(process.env).filter(([name]) => !/^(?:ROTA|npm)_/.test(name));
    this.#environment = {
      ...(Object.fromEntries(inherited) as Record<string, string>),
      PATH: [this.#bin, dirname(process.execPath), process.env["PATH"]].join(delimiter),
      // Programs of guides import "rota" as if it was installed.
      NODE_OPTIONS: `--import ${FROM_SOURCE}`,
      ROTA_SERVER_PORT: port,
      ROTA_URL: `http://127.0.0.1:${port}`,
    };
    this.#command("rota", `exec "${process.execPath}" "${MAIN}" "$@"`);
    // A clone starts Rota by npm.
    this.#command(
      "npm",
      'case "$1" in start) exec rota serve ;; run) shift 4; exec rota "$@" ;; *) exit 1 ;; esac',
    );
  }

  /** `database`: what stands for the PostgreSQL that guides name. */
  static async start(database: string | null): Promise<Reader> {
    const replaced = new Map<string, string>();
    if (database !== null) replaced.set("postgres://rota:secret@127.0.0.1:5432/rota", database);
    for (const port of PORTS) replaced.set(String(port), String(await freePort()));
    return new Reader(replaced);
  }

  async follow(step: Step): Promise<void> {
    if (step.kind === "save") this.#save(step.file, this.#own(step.text));
    else if (step.kind === "start") await this.#start(step);
    else await this.#run(step);
  }

  #save(file: string, text: string): void {
    mkdirSync(dirname(join(this.#folder, file)), { recursive: true });
    writeFileSync(join(this.#folder, file), text);
  }

  /** Ends what ran in the terminal before, as Ctrl-C does, and waits until the new program is ready. */
  async #start({ terminal, text, shown, line }: Extract<Step, { kind: "start" }>): Promise<void> {
    const before = this.#terminals.get(terminal);
    before?.signal("SIGINT");
    await before?.ended;
    const { child, output } = this.#spawn(this.#own(text));
    const running: Terminal = {
      ended: once(child, "close"),
      signal: (name) => {
        try {
          process.kill(-(child.pid as number), name);
        } catch {
          // It has ended.
        }
      },
    };
    this.#terminals.set(terminal, running);
    onTestFinished(async () => {
      running.signal("SIGKILL");
      await running.ended;
    });
    const wanted = pattern(this.#own(shown));
    await eventually(() => wanted.test(output()), `line ${line} to be ready`, READY_MS).catch((error) => {
      throw new Error(`${error.message}; it printed ${output()}`);
    });
  }

  /** Commands that only read are run again until they show what the guide shows. */
  async #run({ text, shown, line }: Extract<Step, { kind: "run" }>): Promise<void> {
    const commands = this.#own(text);
    const isAsShown = (output: string): boolean => {
      if (shown === null) return true;
      if (shown.language === "text")
        return new RegExp(`^${pattern(this.#own(shown.text).trim()).source}$`).test(output.trim());
      return isSameShape(JSON.parse(this.#own(shown.text)), JSON.parse(output));
    };
    const giveUpAt = performance.now() + READY_MS;
    for (;;) {
      const { stdout, stderr, code } = await this.#execute(commands);
      if (code === 0 && isAsShown(stdout)) return;
      if (!isRead(text) || performance.now() > giveUpAt)
        throw new Error(`line ${line} prints ${stdout}${stderr}`);
    }
  }

  /** Runs commands in one shell. Variables that they set stay for those after them. */
  async #execute(commands: string): Promise<{ stdout: string; stderr: string; code: number | null }> {
    const kept = join(this.#bin, "variables");
    const before = existsSync(kept) ? `. "${kept}"\n` : "";
    const script = `${before}set -eua\ntrap 'export -p > "${kept}"' EXIT\n${commands}`;
    const { child, output, stdout, stderr } = this.#spawn(script);
    const timer = setTimeout(() => child.kill("SIGKILL"), RUN_MS);
    const [code] = (await once(child, "close")) as [number | null];
    clearTimeout(timer);
    if (child.signalCode === "SIGKILL") throw new Error(`it did not end within ${RUN_MS} ms: ${output()}`);
    return { stdout: stdout(), stderr: stderr(), code };
  }

  #spawn(script: string) {
    const child = spawn("bash", ["--norc", "-c", script], {
      cwd: this.#folder,
      env: this.#environment,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const texts = { out: "", err: "", both: "" };
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      texts.out += chunk;
      texts.both += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk) => {
      texts.err += chunk;
      texts.both += chunk;
    });
    return { child, stdout: () => texts.out, stderr: () => texts.err, output: () => texts.both };
  }

  /** The text with the ports and the database of this test. */
  #own(text: string): string {
    const shown = new RegExp([...this.#replaced.keys()].map(literally).join("|"), "g");
    return text.replaceAll(shown, (found) => this.#replaced.get(found) as string);
  }

  #command(name: string, script: string): void {
    const file = join(this.#bin, name);
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
  }
}

/** Text as a pattern in which "…" stands for the rest of a word or line that is different each time. */
function pattern(text: string): RegExp {
  return new RegExp(
    text
      .trim()
      .split("\n")
      .map((line) => line.trimEnd().split("…").map(literally).join(".*"))
      .join("[ ]*\n"),
  );
}

/** A text as a pattern that fits it alone. */
function literally(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/** Whether all commands of a block only read, so that they may be run again. */
function isRead(text: string): boolean {
  const commands = text.replaceAll("\\\n", " ").trim().split("\n");
  return commands.every(
    (command) =>
      (/^curl -s /.test(command) && !/ -(?:d|X) /.test(command)) ||
      /^rota (?:task|tasks|runs|waiting|stats|schedules|nodes|lanes|deliveries)(?: (?!put|clear|cancel|retry|delete|run|pause|resume)|$)/.test(
        command,
      ),
  );
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

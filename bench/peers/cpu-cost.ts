import { ServerCpu } from "./server-cpu.ts";

/** Processor time that this process and its database's server take from here on. */
export class CpuCost {
  readonly #server: ServerCpu;
  readonly #ownBefore: NodeJS.CpuUsage;
  readonly #serverBeforeMs: number;

  private constructor(server: ServerCpu, serverBeforeMs: number) {
    this.#server = server;
    this.#serverBeforeMs = serverBeforeMs;
    this.#ownBefore = process.cpuUsage();
  }

  static async of(url: string): Promise<CpuCost> {
    const server = await ServerCpu.of(url);
    return new CpuCost(server, await server.readMs());
  }

  async read(): Promise<{ ownMs: number; serverMs: number }> {
    const { user, system } = process.cpuUsage(this.#ownBefore);
    const serverMs = (await this.#server.readMs()) - this.#serverBeforeMs;
    return { ownMs: (user + system) / 1_000, serverMs };
  }
}

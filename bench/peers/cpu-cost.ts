import { type RanSoFar, ServerCpu } from "./server-cpu.ts";

/** Processor time that this process and its database's server take from here on. */
export class CpuCost {
  readonly #server: ServerCpu;
  readonly #ownBefore: NodeJS.CpuUsage;
  readonly #serverBefore: RanSoFar;

  private constructor(server: ServerCpu, serverBefore: RanSoFar) {
    this.#server = server;
    this.#serverBefore = serverBefore;
    this.#ownBefore = process.cpuUsage();
  }

  static async of(url: string): Promise<CpuCost> {
    const server = await ServerCpu.of(url);
    return new CpuCost(server, await server.read());
  }

  async read(): Promise<{ ownMs: number; serverMs: number }> {
    const { user, system } = process.cpuUsage(this.#ownBefore);
    const serverMs = await this.#server.readMs(this.#serverBefore);
    return { ownMs: (user + system) / 1_000, serverMs };
  }
}

import { once } from "node:events";

/** Waits until the process that started this program lets it take its next step. */
export async function receive(): Promise<void> {
  await once(process, "message");
}

export function say(said: unknown): void {
  process.send?.(said);
}

// The process that started it has gone.
process.once("disconnect", () => process.exit());

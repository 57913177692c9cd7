import { V7Generator } from "uuidv7";
import type { Clock } from "../model/clock.ts";

/** A clock set back by less than this does not make ids go backwards. */
const ROLLBACK_ALLOWANCE_MS = 10_000;

/** Makes ids that sort by the time they were made: the noun's prefix and 32 hexadecimal digits. */
export function idMaker(prefix: string, clock: Clock): () => string {
  const generator = new V7Generator();
  return () => prefix + generator.generateOrResetCore(clock.now(), ROLLBACK_ALLOWANCE_MS).toHex();
}

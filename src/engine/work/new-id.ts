import { randomBytes } from "node:crypto";
import { V7Generator } from "uuidv7";
import type { Clock } from "../../model/clock.ts";

/** A clock set back by less than this does not make ids go backwards. */
const ROLLBACK_ALLOWANCE_MS = 10_000;
/** Random numbers fetched in one call: a call per id takes longer than making the id. */
const RANDOM_NUMBERS = 1_024;

/** Makes ids that sort by the time they were made: the noun's prefix and 32 hexadecimal digits. */
export function idMaker(prefix: string, clock: Clock): () => string {
  const generator = new V7Generator(randomNumbers());
  // The generator's own `toHex` builds the text digit by digit, which takes as long as all the rest.
  const bytes = Buffer.alloc(16);
  return () => {
    bytes.set(generator.generateOrResetCore(clock.now(), ROLLBACK_ALLOWANCE_MS).bytes);
    return prefix + bytes.toString("hex");
  };
}

/** Random bytes in the id of a membership: enough to distinguish processes of one machine that get the same pid. */
const NODE_ID_BYTES = 6;

/** Makes ids for memberships of this process. They are short, since every attempt is stored with one. */
export function nodeIdMaker(host: string, pid: number): () => string {
  return () => `${host}-${pid}-${randomBytes(NODE_ID_BYTES).toString("hex")}`;
}

function randomNumbers(): { nextUint32(): number } {
  const numbers = new Uint32Array(RANDOM_NUMBERS);
  let used = RANDOM_NUMBERS;
  return {
    nextUint32() {
      if (used === RANDOM_NUMBERS) {
        crypto.getRandomValues(numbers);
        used = 0;
      }
      return numbers[used++] as number;
    },
  };
}

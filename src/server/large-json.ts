import type { FastifyRequest } from "fastify";
import type { SizedReading } from "../interface/tasks.ts";
import { TurnBudget } from "../services/turn-budget.ts";

/** JSON of this size takes some milliseconds to parse or to serialize. */
const LARGE_BYTES = 65_536;
/** How much of it is parsed or serialized in one turn of the event loop. A mebibyte takes up to 50 ms. */
const PER_TURN = { pieces: 4, bytes: 262_144, rest: 2 } as const;

/** How a stored task counts: as if the caller had sent it, or as the response, which is charged again by its real size. */
type CountsAs = "bytesIn" | "bytesOut";

/** Large bodies and large stored tasks: they take turns, with pauses, so that they delay no other request for long. */
export class LargeJson {
  readonly #turns = new TurnBudget<string | null>(PER_TURN);

  /** Resolves when it is the turn of so much JSON of a tenant. Undefined: it is small, and need not wait. */
  turnFor(tenant: string | null, bytes: number): Promise<void> | undefined {
    return bytes < LARGE_BYTES ? undefined : this.#next(tenant, bytes);
  }

  /** Charges the caller of a request for a stored task before it is read. Throws `rate_limited`. */
  paid({ charge }: FastifyRequest, as: CountsAs = "bytesOut"): SizedReading {
    if (charge === null) return {};
    return {
      onSize: (bytes) => {
        charge.pay({ [as]: bytes });
        return this.turnFor(charge.owner.tenant, bytes);
      },
    };
  }

  /** The same for a change that is done already, and cannot be refused any more. */
  owed({ charge }: FastifyRequest): SizedReading {
    if (charge === null) return {};
    return {
      onSize: (bytes) => {
        charge.settle({ bytesOut: bytes });
        return this.turnFor(charge.owner.tenant, bytes);
      },
    };
  }

  async #next(tenant: string | null, bytes: number): Promise<void> {
    await this.#turns.next(tenant);
    this.#turns.used(bytes);
  }
}

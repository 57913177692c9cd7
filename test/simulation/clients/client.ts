import type { Rota } from "../../../src/interface/rota.ts";
import { RotaError } from "../../../src/model/errors.ts";
import type { Chance } from "../../chaos/chance.ts";
import type { Acknowledgement } from "../../chaos/history.ts";
import type { Ledger } from "../../chaos/ledger.ts";
import type { World } from "../world.ts";

/** How long a client waits for a response before it takes it for lost. */
const PATIENCE_MS = 5_000;
const AWAY_PAUSE_MS = 300;

/** A client of Rota: makes one request after the other until it is stopped. */
export abstract class Client {
  protected readonly world: World;
  protected readonly chance: Chance;
  protected readonly ledger: Ledger;
  #stopped = false;

  constructor(world: World, name: string) {
    this.world = world;
    this.chance = world.chance.fork(name);
    this.ledger = world.ledger;
    this.#next();
  }

  protected abstract step(): void;

  stop(): void {
    this.#stopped = true;
  }

  #next(): void {
    const pauseMs = this.chance.between(1, this.world.climate.requestEveryMs);
    this.world.outside.plan(pauseMs, "a client acts", () => {
      if (this.#stopped) return;
      this.step();
      this.#next();
    });
  }

  /** It got a response. */
  protected note(acknowledgement: Acknowledgement): void {
    this.ledger.acknowledged.push(acknowledgement);
  }

  /** Sends a request to any process. The outcome is unknown unless `onAnswer` is called. */
  protected ask<Answer>(
    what: string,
    request: (rota: Rota) => Promise<Answer>,
    onAnswer: (answer: Answer) => void = () => {},
    failed: (error: unknown) => void = () => {},
  ): void {
    const { open } = this.world;
    if (open.length === 0) failed(null);
    else this.chance.pick(open).ask(what, request).then(onAnswer, failed);
  }

  /** Repeats a request until a process responds: for what may be repeated. */
  protected askUntilAnswered<Answer>(
    what: string,
    request: (rota: Rota) => Promise<Answer>,
    onAnswer: (answer: Answer) => void,
  ): void {
    let isOver = false;
    const again = (afterMs: number) =>
      this.world.outside.plan(afterMs, "a client asks again", () => {
        if (isOver || this.#stopped) return;
        isOver = true;
        this.askUntilAnswered(what, request, onAnswer);
      });
    this.ask(
      what,
      request,
      (answer) => {
        isOver = true;
        onAnswer(answer);
      },
      (error) => {
        if (isAway(error)) again(AWAY_PAUSE_MS);
        else isOver = true;
      },
    );
    again(PATIENCE_MS);
  }
}

/** Whether the same request may be answered by another process, or later. */
function isAway(error: unknown): boolean {
  return !(error instanceof RotaError) || ["storage_unavailable", "draining"].includes(error.code);
}

import { PermanentError } from "../../src/executors/errors.ts";
import type { Executor, ExecutorContext } from "../../src/executors/executor.ts";
import type { Task } from "../../src/model/task.ts";
import type { Call, Mutable } from "../chaos/history.ts";
import type { Actor } from "./agenda.ts";
import { type Climate, happens } from "./climate.ts";

type OpenCall = Mutable<Call>;

/** How work that goes wrong does so, and how often next to the others. */
const FAULTS = { fails: 5, refuses: 1, hangs: 2, ignores: 2, breaks: 1 } as const;
type Manner = "answers" | "answers at once" | keyof typeof FAULTS;

/** Some agents are slow more often, so that there are tasks to pre-empt, and turns that take messages. */
const LONG_ONE_IN: Readonly<Record<string, number>> = { helper: 2, talker: 3, rusher: 200 };
/** When an agent asks for messages that were steered to it, as shares of its turn. */
const ASKS_AT = [0.2, 0.4, 0.6, 0.8] as const;

/** The executors of all processes, some of which fail. They write down everything they are asked. */
export class Agents {
  readonly calls: OpenCall[] = [];
  readonly #climate: () => Climate;
  /** While it is set, all of them take everything so. */
  #strike: "fails" | "hangs" | null = null;
  /** The next place in the order of what they see. */
  #order = 0;
  #holding: (() => void)[] | null = [];

  constructor(climate: () => Climate) {
    this.#climate = climate;
  }

  get now(): number {
    return this.#order;
  }

  strike(how: "fails" | "hangs" | null): void {
    this.#strike = how;
  }

  /** How many tasks wait to be let go. */
  get held(): number {
    return this.#holding?.length ?? 0;
  }

  /** Lets those go, and from now on holds none. */
  letGo(): void {
    for (const go of this.#holding ?? []) go();
    this.#holding = null;
  }

  /** The process is gone, and so are its executors. */
  gone(process: string): void {
    for (const call of this.calls) if (call.process === process) this.#end(call);
  }

  executorIn(process: Actor): Executor {
    return (task, context) => {
      const call = this.#begin(process, task);
      context.signal.addEventListener("abort", () => this.#end(call), { once: true });
      if (task.agentId === "holder") return this.#hold(call);
      return this.#take(process, call, context, task.agentId);
    };
  }

  #manner({ chance }: Actor): Manner {
    if (this.#strike !== null) return this.#strike;
    if (happens(chance, this.#climate().agentsFail)) return chance.weighted(FAULTS);
    return chance.oneIn(6) ? "answers at once" : "answers";
  }

  #begin(process: Actor, task: Task): OpenCall {
    const { number: attempt = 0, node = "" } = task.attempts.at(-1) ?? {};
    const call = {
      taskId: task.taskId,
      attempt,
      node,
      process: process.name,
      began: ++this.#order,
      ended: null,
      answer: null,
      dependencies: task.dependencies ?? [],
    };
    this.calls.push(call);
    return call;
  }

  #end(call: OpenCall): void {
    call.ended ??= ++this.#order;
  }

  #answer(call: OpenCall): unknown {
    const result = { did: call.taskId, call: call.began };
    if (call.ended === null) call.answer = { result };
    this.#end(call);
    return result;
  }

  async #hold(call: OpenCall): Promise<unknown> {
    await new Promise<void>((go) => (this.#holding === null ? go() : this.#holding.push(go)));
    return this.#answer(call);
  }

  #take(process: Actor, call: OpenCall, context: ExecutorContext, agentId: string): unknown {
    const manner = this.#manner(process);
    const { signal, progress, usage, messages } = context;
    const { chance } = process;
    if (manner === "answers at once") return this.#answer(call);
    if (manner === "breaks") {
      this.#end(call);
      throw new Error("it broke");
    }
    const isLong = chance.oneIn(LONG_ONE_IN[agentId] ?? 6);
    const longMs = isLong ? chance.between(500, 6_000) : chance.between(2, agentId === "rusher" ? 12 : 300);
    if (chance.oneIn(4)) process.plan(longMs / 2, "agent reports", () => progress({ half: call.taskId }));
    // What it asks for while its process is stopped, or after it was aborted, it does not get.
    if (agentId === "talker") {
      for (const share of ASKS_AT)
        process.plan(longMs * share, "agent asks", () => void messages().catch(() => {}));
    }
    if (chance.oneIn(6)) usage({ inputTokens: chance.between(1, 90), contextWindow: 100 });
    return new Promise((resolve, reject) => {
      const stop = () => reject(signal.reason);
      if (manner !== "ignores") signal.addEventListener("abort", stop, { once: true });
      if (manner === "hangs") return;
      const extraMs = manner === "ignores" ? chance.between(0, 20_000) : 0;
      process.plan(longMs + extraMs, `agent ${manner}`, () => {
        if (manner === "fails" || manner === "refuses") {
          this.#end(call);
          reject(manner === "fails" ? new Error("it failed") : new PermanentError("never"));
        } else resolve(this.#answer(call));
      });
    });
  }
}

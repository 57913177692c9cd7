import type { Dispatcher } from "undici";
import type { Timer } from "../../src/model/clock.ts";
import { TargetGuard } from "../../src/outbound/target-guard.ts";
import { type Actor, acting } from "./agenda.ts";

/**
 * While a simulation runs, whatever an actor takes from the platform's event loop, or from its chance, comes from the
 * simulation instead: turns are planned, random numbers are drawn from the actor's own chance, and who would wait for real
 * time gets an error. Code that is no actor's, such as the test runner's, notices nothing.
 *
 * `callOut`: how an actor reaches the receivers of callbacks. Returns a function that undoes it all.
 */
export function enterSandbox(callOut: (actor: Actor) => Dispatcher): () => void {
  const real = {
    setImmediate: globalThis.setImmediate,
    clearImmediate: globalThis.clearImmediate,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    setTimeout: globalThis.setTimeout,
  };
  const global = globalThis as unknown as Record<string, unknown>;
  const replace = <Name extends keyof typeof real>(
    name: Name,
    simulated: (actor: Actor, ...args: Parameters<(typeof real)[Name]>) => unknown,
  ) => {
    const original = real[name] as unknown as (...args: unknown[]) => unknown;
    global[name] = Object.assign((...args: Parameters<(typeof real)[Name]>) => {
      const actor = acting.getStore();
      return actor === undefined ? original(...args) : simulated(actor, ...args);
    }, original);
  };

  replace("setImmediate", (actor, callback, ...args) =>
    actor.plan(0, "turn", () => (callback as (...args: unknown[]) => void)(...args)),
  );
  replace("clearImmediate", (_actor, immediate) => (immediate as unknown as Timer | undefined)?.cancel());
  // What keeps a process alive has nothing to do.
  replace("setInterval", () => undefined);
  replace("clearInterval", () => undefined);
  replace("setTimeout", (actor) => {
    throw new Error(`${actor.name} waits for real time.`);
  });

  const drawn = crypto.getRandomValues;
  const draw = (numbers: Uint32Array<ArrayBuffer>) => {
    const actor = acting.getStore();
    if (actor === undefined) return drawn.call(crypto, numbers);
    if (!(numbers instanceof Uint32Array)) throw new Error(`${actor.name} draws numbers of another size.`);
    numbers.set(Array.from(numbers, () => actor.chance.next() * 2 ** 32));
    return numbers;
  };
  Object.defineProperty(crypto, "getRandomValues", { configurable: true, value: draw });

  const { dispatcher } = TargetGuard.prototype;
  TargetGuard.prototype.dispatcher = function (this: TargetGuard) {
    const actor = acting.getStore();
    return actor === undefined ? dispatcher.call(this) : Promise.resolve(callOut(actor));
  };

  return () => {
    TargetGuard.prototype.dispatcher = dispatcher;
    Object.assign(globalThis, real);
    Reflect.deleteProperty(crypto, "getRandomValues");
  };
}

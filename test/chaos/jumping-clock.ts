/**
 * Loaded into a node before Rota. Each SIGWINCH sets its wall clock: ten minutes ahead, then ten minutes behind, then right.
 * Everything in a process reads the time of day from `Date`; how much time passes comes from another clock,
 * which never jumps.
 */
const WRONG_BY_MS = [0, 600_000, -600_000] as const;

const RealDate = Date;
let jumps = 0;

function now(): number {
  return RealDate.now() + (WRONG_BY_MS[jumps % WRONG_BY_MS.length] ?? 0);
}

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, name, receiver) => (name === "now" ? now : Reflect.get(target, name, receiver)),
});

process.on("SIGWINCH", () => {
  jumps += 1;
});

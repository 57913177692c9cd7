/** Values that throw, or report a wrong type, when they are read. Each is legal to throw and to return. */
export function hostileValues(): [what: string, value: unknown][] {
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const traps = { getPrototypeOf: boom, get: boom, has: boom, ownKeys: boom };
  return [
    ["an error whose name is undefined", Object.assign(new Error(""), { name: undefined })],
    ["an error whose name is a number", Object.assign(new Error(""), { name: 5 })],
    ["an error whose name is an object", Object.assign(new Error(""), { name: Object.create(null) })],
    ["an error whose message is null", Object.assign(new Error(""), { message: null })],
    ["an error whose message is a symbol", Object.assign(new Error(""), { message: Symbol("s") })],
    ["an error whose message is a getter that throws", getting(new Error(""), "message")],
    ["an object whose message is a getter that throws", getting({}, "message")],
    ["a revoked Proxy", revoked.proxy],
    ["a Proxy with traps that throw", new Proxy({}, traps)],
    ["a Proxy of an error with traps that throw", new Proxy(new Error("inside"), traps)],
    ["an object whose toJSON throws", { toJSON: boom }],
    ["an object whose toJSON throws what cannot be shown", { toJSON: () => boom(getting({}, "message")) }],
    ["an object whose toJSON throws null", { toJSON: () => boom(null) }],
    ["an object whose toJSON and toString throw", { toJSON: boom, toString: boom }],
    ["an object whose toJSON answers nothing", { toJSON: () => undefined }],
    ["a function whose toString throws", Object.assign(() => {}, { toString: boom })],
  ];
}

function getting<T extends object>(target: T, property: string): T {
  return Object.defineProperty(target, property, { get: () => boom() });
}

function boom(thrown: unknown = new Error("do not look")): never {
  throw thrown;
}

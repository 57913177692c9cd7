import { expect, test } from "vitest";
import { callbackHost, withPlainHost } from "./callback-host.ts";

function stored(text: string): string {
  return withPlainHost(new URL(text), text);
}

test.each([
  ["http://hooks.example/a?b#c", "hooks.example"],
  ["https://hooks.example:8443", "hooks.example"],
  ["https://HOOKS.Example./", "hooks.example"],
  ["HTTP://hooks.example..?x", "hooks.example"],
  ["http://127.0.0.1:1/", "127.0.0.1"],
  ["http://127.0.0.1:65535/", "127.0.0.1"],
  ["http://0x7f.1/", "127.0.0.1"],
  ["http://2130706433/", "127.0.0.1"],
  ["http://0177.0.0.1./", "127.0.0.1"],
  ["http://%68ooks.example/", "hooks.example"],
  ["http://ｈooks.example/", "hooks.example"],
  ["http:\\\\hooks.example\\a", "hooks.example"],
  ["http:hooks.example", "hooks.example"],
  [" \thttp://ho\noks.example/", "hooks.example"],
  ["http://@hooks.example/", "hooks.example"],
  ["http://[2001:DB8::0:1]:9/", "[2001:db8::1]"],
  ["https://bücher.example/", "xn--bcher-kva.example"],
])("%j leads to %s", (text, host) => {
  expect(callbackHost(stored(text))).toBe(host);
});

test.each([
  "http://hooks.example",
  "https://Hooks.Example.:8443/a b?c=ü#d",
  "http://127.0.0.1:9867/hook?token=secret",
  "http://[::1]/",
])("%j is kept as it was written", (text) => {
  expect(stored(text)).toBe(text);
});

test("a host that is too long for any name is cut, so that it fits an index", () => {
  expect(callbackHost(`http://${"a".repeat(2_000)}/`)).toHaveLength(255);
});

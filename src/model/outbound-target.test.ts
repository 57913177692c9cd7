import { expect, test } from "vitest";
import { parseOutboundTarget } from "./outbound-target.ts";

function read(entry: string): string {
  const target = parseOutboundTarget(entry);
  if (target === null) return "nothing";
  if (target.kind !== "network") return `${target.kind} ${target.name}`;
  const [address, prefixLength] = target.network;
  return `${address}/${prefixLength}`;
}

test.each([
  ["hooks.internal", "host hooks.internal"],
  ["Hooks.Internal.", "host hooks.internal"],
  ["bücher.example", "host xn--bcher-kva.example"],
  ["localhost", "host localhost"],
  ["*.Example.internal", "below example.internal"],
  ["127.0.0.1", "127.0.0.1/32"],
  ["0x7f.1", "127.0.0.1/32"],
  ["::1", "::1/128"],
  ["[::1]", "::1/128"],
  ["::ffff:10.0.0.5", "10.0.0.5/32"],
  ["10.0.0.0/8", "10.0.0.0/8"],
  ["10.1.2.3/8", "10.1.2.3/8"],
  ["0.0.0.0/0", "0.0.0.0/0"],
  ["fd00::/8", "fd00::/8"],
])("%s opens %s", (entry, opened) => {
  expect(read(entry)).toBe(opened);
});

test.each([
  "",
  " ",
  "*",
  "*.",
  "*.127.0.0.1",
  "hooks.*",
  "two words",
  "http://hooks.internal",
  "hooks.internal/path",
  "hooks.internal:8080",
  "hooks.internal:80",
  "hooks.internal:",
  "[::1]:80",
  "user:secret@hooks.internal",
  "hooks.internal?x",
  "10.0.0.0/33",
  "10.0.0/8",
  "10.0.0.0/",
  "fd00::/129",
  "::ffff:10.0.0.0/104",
  "256.0.0.1",
])("%j opens nothing and is a fault", (entry) => {
  expect(read(entry)).toBe("nothing");
});

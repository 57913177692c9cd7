import { expect, test } from "vitest";
import { parseStorageUrl, shownStorageUrl } from "./storage-url.ts";

test.each([
  ["sqlite:rota.db", { driver: "sqlite", path: "rota.db" }],
  ["sqlite::memory:", { driver: "sqlite", path: ":memory:" }],
  ["postgres://h/db", { driver: "postgres", url: "postgres://h/db" }],
  ["postgresql://h/db", { driver: "postgres", url: "postgresql://h/db" }],
  ["sqlite:", null],
  ["rota.db", null],
  ["mysql://h/db", null],
  ["postgres://u:s3cret@h:99999/db", null],
  ["", null],
])("%s is read", (url, parsed) => {
  expect(parseStorageUrl(url)).toEqual(parsed);
});

test.each([
  ["sqlite:data/rota.db", "sqlite:data/rota.db"],
  ["postgres://user:secret@db.example:5433/rota?password=secret", "postgres://db.example:5433/rota"],
  ["postgres://user:secret@host:1,host:2/rota", "postgres"],
])("%s is shown without its secrets", (url, shown) => {
  expect(shownStorageUrl(url)).toBe(shown);
});

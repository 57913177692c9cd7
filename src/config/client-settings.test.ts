import { expect, test } from "vitest";
import { clientAddress } from "./client-settings.ts";

test.each([
  [{}, {}, { url: "http://127.0.0.1:7682" }],
  [{}, { ROTA_URL: "", ROTA_KEY: "" }, { url: "http://127.0.0.1:7682" }],
  [{}, { ROTA_URL: "http://a", ROTA_KEY: "k" }, { url: "http://a", key: "k" }],
  [
    { url: "http://b", key: "l" },
    { ROTA_URL: "http://a", ROTA_KEY: "k" },
    { url: "http://b", key: "l" },
  ],
])("flags %j over variables %j give %j", (flags, environment, address) => {
  expect(clientAddress(flags, environment)).toEqual(address);
});

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
  [{ url: "localhost:7682" }, {}, { url: "http://localhost:7682" }],
  [{ url: "localhost" }, {}, { url: "http://localhost" }],
  [{ url: "rota:7682" }, {}, { url: "http://rota:7682" }],
  [{ url: "127.0.0.1:7682/rota" }, {}, { url: "http://127.0.0.1:7682/rota" }],
  [{ url: "[::1]:7682" }, {}, { url: "http://[::1]:7682" }],
  [{ url: ":7682" }, {}, { url: "http://127.0.0.1:7682" }],
  [{}, { ROTA_URL: "7682" }, { url: "http://127.0.0.1:7682" }],
  // An invalid value stays as it is, and the client says what to write.
  [{ url: "nonsense" }, {}, { url: "nonsense" }],
  [{ url: "ftp://a" }, {}, { url: "ftp://a" }],
])("flags %j over variables %j give %j", (flags, environment, address) => {
  expect(clientAddress(flags, environment)).toEqual(address);
});

test("a process within a task has the token of its attempt", () => {
  expect(clientAddress({}, { ROTA_TASK_TOKEN: "rtt_1" })).toMatchObject({ taskToken: "rtt_1" });
  expect(clientAddress({}, { ROTA_TASK_TOKEN: "" })).not.toHaveProperty("taskToken");
});

import { expect, test } from "vitest";
import { isMask, masked } from "./masked.ts";

test("masks every secret of a configuration, and nothing else", () => {
  const config = {
    storage: "postgres://rota:secret@db.example:5432/rota?sslmode=require",
    webhooks: { allow: ["10.0.0.0/8"], secret: "whsec_secret", secretEnv: "ROTA_WEBHOOK_SECRET" },
    executors: {
      custom: {
        type: "http",
        url: "https://x.example/run?key=secret",
        headers: { authorization: "secret", a: "secret" },
      },
    },
    agents: {
      research: {
        executor: {
          type: "openai",
          apiKey: "secret",
          apiKeyEnv: "KEY",
          baseUrl: "https://x.example/v1",
          request: {
            ...{ api_key: "secret", max_tokens: 5, key: "secret", private_key: "secret", passwd: "secret" },
            ...{
              credentials: { id: "secret", parts: ["secret"] },
              aws: { access_key_id: "secret", region: "eu" },
            },
          },
        },
      },
      "token-counter": { lane: "main", maxInflight: 2 },
      shell: { executor: { type: "command", command: ["./run"], env: { KEY: "secret" } } },
    },
    lanes: { main: { concurrency: 3 } },
  };
  const shown = masked(config);
  expect(JSON.stringify(shown)).not.toMatch(/"[^"]*\bsecret\b[^"]*"(?!:)/);
  expect(shown).toEqual({
    ...config,
    storage: "postgres://db.example:5432/rota",
    webhooks: { ...config.webhooks, secret: "…" },
    executors: {
      custom: { type: "http", url: "https://x.example/run?…", headers: { authorization: "…", a: "…" } },
    },
    agents: {
      ...config.agents,
      research: {
        executor: {
          ...config.agents.research.executor,
          apiKey: "…",
          request: {
            ...{ api_key: "…", max_tokens: 5, key: "…", private_key: "…", passwd: "…" },
            ...{ credentials: { id: "…", parts: ["…"] }, aws: { access_key_id: "…", region: "eu" } },
          },
        },
      },
      shell: { executor: { ...config.agents.shell.executor, env: { KEY: "…" } } },
    },
  });
});

test.each([
  ["…", true],
  ["https://x.example/?…", true],
  ["https://x.example/#…", true],
  ["https://x.example/", false],
  ["and so on…", false],
])("knows a mask: %s", (text, is) => {
  expect(isMask(text)).toBe(is);
});

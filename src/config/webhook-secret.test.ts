import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ConfigSource } from "./config-source.ts";
import { rotaOptions } from "./rota-options.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

function source(webhooks: unknown, environment: Record<string, string> = {}): ConfigSource {
  const folder = mkdtempSync(join(tmpdir(), "rota-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  if (webhooks !== undefined) {
    writeFileSync(join(folder, "rota.config.json"), JSON.stringify({ webhooks }));
  }
  return new ConfigSource({ folder, environment });
}

function webhooksOf(webhooks: unknown, environment: Record<string, string> = {}): unknown {
  return rotaOptions(source(webhooks, environment).load()).webhooks;
}

function faultOf(webhooks: unknown, environment: Record<string, string> = {}): string {
  let message = "";
  try {
    source(webhooks, environment).load();
  } catch (error) {
    message = (error as Error).message;
  }
  return message.replace("the configuration has a fault: ", "");
}

test("the secret is read from the usual variable, or from the one that is named", () => {
  expect(webhooksOf(undefined, { ROTA_WEBHOOK_SECRET: SECRET })).toEqual({ allow: [], secret: SECRET });
  expect(webhooksOf({ secretEnv: "HOOKS" }, { HOOKS: SECRET })).toEqual({ allow: [], secret: SECRET });
  expect(webhooksOf(undefined, { ROTA_WEBHOOKS_SECRET_ENV: "HOOKS", HOOKS: SECRET })).toMatchObject({
    secret: SECRET,
  });
});

test("it is read again with the file", () => {
  const again = source({ secretEnv: "HOOKS" }, { HOOKS: SECRET }).loadAgain();
  expect(rotaOptions(again).webhooks).toEqual({ allow: [], secret: SECRET });
});

test("the usual variable may be missing, whether or not the file names it; any other must be set", () => {
  expect(webhooksOf(undefined)).toEqual({ allow: [] });
  expect(webhooksOf({ secretEnv: "ROTA_WEBHOOK_SECRET" }, { ROTA_WEBHOOK_SECRET: "" })).toEqual({
    allow: [],
  });
  expect(faultOf({ secretEnv: "HOOKS" })).toBe(
    "`webhooks.secretEnv` names HOOKS, which is not set: set it, or leave the option out",
  );
});

test("a faulty secret is a fault that does not show it", () => {
  const fault = faultOf(undefined, { ROTA_WEBHOOK_SECRET: "whsec_no base64!" });
  expect(fault).toMatch(/^ROTA_WEBHOOK_SECRET must be "whsec_" and the key in base64, as `echo /);
  expect(fault).not.toContain("no base64!");
});

test("the variable of the secret is not taken for a misspelt option", () => {
  expect(source(undefined, { ROTA_WEBHOOK_SECRET: SECRET }).load().hints).toEqual([]);
  const named = source({ secretEnv: "ROTA_WEBHOOKS_SECRET" }, { ROTA_WEBHOOKS_SECRET: SECRET });
  expect(named.load().hints).toEqual([]);
});

test("what callbacks may reach is a list, or in a variable also names with commas between them", () => {
  expect(webhooksOf({ allow: ["hooks.internal", "10.0.0.0/8"] })).toEqual({
    allow: ["hooks.internal", "10.0.0.0/8"],
  });
  expect(webhooksOf(undefined, { ROTA_WEBHOOKS_ALLOW: "127.0.0.1, *.internal" })).toEqual({
    allow: ["127.0.0.1", "*.internal"],
  });
  expect(webhooksOf(undefined, { ROTA_WEBHOOKS_ALLOW: '["::1"]' })).toEqual({ allow: ["::1"] });
});

test.each([
  [
    { allow: ["ok.internal", "http://user:secret@x/"] },
    /^`webhooks\.allow\.1` must be a host .* \(rota\.config\.json\)$/,
  ],
  [{ allow: [5] }, /^`webhooks\.allow\.0` must be a host /],
  [{ allow: 5 }, /^`webhooks\.allow` must be an array of hosts, addresses and networks, not 5/],
  [{ secretEnv: "whsec_not/a+name=" }, /^`webhooks\.secretEnv` must be the name of an environment variable/],
  [{ secretEnv: 5 }, /^`webhooks\.secretEnv` must be the name of an environment variable/],
  [{ secretEnv: "whsec_notANameEither" }, /^`webhooks\.secretEnv` names …, which is not set/],
  [{ secret: "whsec_secret" }, /^unknown option `webhooks\.secret`: did you mean `webhooks\.secretEnv`\?/],
])("the section %j has one fault", (webhooks, sentence) => {
  const fault = faultOf(webhooks);
  expect(fault).toMatch(sentence);
  expect(fault).not.toMatch(/user:secret|whsec_/);
});

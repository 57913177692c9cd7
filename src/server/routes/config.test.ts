import { expect, test } from "vitest";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { RotaClient } from "../../client/index.ts";

test("the client reads the configuration as an admin, and with no other role", async () => {
  const { key, url } = await openKeyedServer();
  const admin = await key({ role: "admin" });
  expect(await new RotaClient({ url, key: admin }).config()).toEqual({});
  const operator = await key({ role: "operator" });
  await expect(new RotaClient({ url, key: operator }).config()).rejects.toMatchObject({ code: "forbidden" });
});

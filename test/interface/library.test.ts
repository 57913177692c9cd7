import { openTestRota } from "../support/rota.ts";
import { describeRotaApi } from "./suite.ts";

describeRotaApi("the library", async ({ start = true, ...params } = {}) => {
  const { rota, clock } = await openTestRota(params);
  if (start) await rota.start();
  return { api: rota, rota, clock, withKey: () => rota };
});

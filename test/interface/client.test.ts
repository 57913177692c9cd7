import { RotaClient } from "../../src/client/index.ts";
import { openTestServer } from "../support/http.ts";
import { describeRotaApi } from "./suite.ts";

describeRotaApi("the client", async (params = {}) => {
  const { rota, clock, url } = await openTestServer(params);
  // Time stands still for the client too, and it retries nothing, so that refusals show at once.
  const api = new RotaClient({ url, clock, retry: false });
  const withKey = (key: string) => new RotaClient({ url, key, clock, retry: false });
  return { api, rota, clock, withKey };
});

import type { KeyInput } from "../../src/interface/keys.ts";
import { type Answer, ask, openTestServer, type TestServer, type TestServerParams } from "./http.ts";

export interface KeyedServer extends TestServer {
  /** A new key. */
  key(input: Partial<KeyInput>): Promise<string>;
  /** One request with a key. */
  askWith(key: string, path: string, init?: Parameters<typeof ask>[1]): Promise<Answer>;
}

/** A server that asks for keys, of which the test makes those it needs. */
export async function openKeyedServer(params: TestServerParams = {}): Promise<KeyedServer> {
  const server = await openTestServer(params);
  const { rota, url } = server;
  const key = async (input: Partial<KeyInput>) =>
    (await rota.keys.create({ role: "operator", name: "a test", ...input })).key;
  return {
    ...server,
    key,
    askWith: (key, path, init = {}) =>
      ask(url + path, { ...init, headers: { ...init.headers, authorization: `Bearer ${key}` } }),
  };
}

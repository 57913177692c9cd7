import { ATTACKER_HOST, serveOn } from "../loopback-server.ts";
import type { Scene } from "./attack.ts";

export async function makeAgent({ node }: Scene, { id, url }: { id: string; url: string }): Promise<void> {
  await node.mustPost("/v1/agents", { id, executor: { type: "http", url } });
}

/** The agent `hanging` takes every call and never responds. */
export async function makeHangingAgent(scene: Scene): Promise<void> {
  const url = await serveOn(ATTACKER_HOST, (request) => void request.resume());
  await makeAgent(scene, { id: "hanging", url });
}

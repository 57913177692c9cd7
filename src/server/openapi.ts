import { once } from "node:events";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";

let text: Promise<Buffer> | undefined;

/**
 * The OpenAPI document as JSON text, built once for the process, at the first request. Building takes half a second and would
 * block other requests, so another thread does it.
 */
export function describeApi(): Promise<Buffer> {
  text ??= makeText().catch((error) => {
    text = undefined;
    throw error;
  });
  return text;
}

async function makeText(): Promise<Buffer> {
  // It lies beside this file and has the same extension, in the sources and in the build.
  const program = new URL(`./openapi-thread${extname(import.meta.url)}`, import.meta.url);
  const thread = new Worker(program, { name: "openapi" });
  const [json] = await once(thread, "message");
  return Buffer.from(json as string);
}

/** Builds the OpenAPI document in a thread of its own, and ends. */
import { parentPort } from "node:worker_threads";
import { makeDocument } from "./openapi-document.ts";

parentPort?.postMessage(JSON.stringify(await makeDocument()));

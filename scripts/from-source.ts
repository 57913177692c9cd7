/**
 * Lets a program import "rota" from the sources beside this file, without a build:
 * `node --import ./scripts/from-source.ts program.ts`.
 */
import { registerHooks } from "node:module";

const SOURCES: Readonly<Record<string, string>> = {
  rota: new URL("../src/index.ts", import.meta.url).href,
  "rota/client": new URL("../src/client/index.ts", import.meta.url).href,
  "rota/testing": new URL("../src/testing/index.ts", import.meta.url).href,
};

registerHooks({
  resolve: (specifier, context, next) => next(SOURCES[specifier] ?? specifier, context),
});

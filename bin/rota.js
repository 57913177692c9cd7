#!/usr/bin/env node
// Every Node since 10 can read this file, so that one which is too old can say so in a sentence.
const [major, minor] = process.versions.node.split(".").map(Number);

if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `Rota needs Node 22.19 or newer; this is ${process.version}. Install a newer one, or run "npm install node@24" in this folder.`,
  );
  process.exitCode = 1;
} else {
  import("../dist/cli/main.js").catch((error) => {
    // A clone that has not been built has no dist/ and runs its sources.
    const isUnbuilt = error.code === "ERR_MODULE_NOT_FOUND" && error.url?.endsWith("/dist/cli/main.js");
    if (!isUnbuilt) throw error;
    return import("../src/cli/main.ts");
  });
}

import { enableCompileCache } from "node:module";
import { join } from "node:path";

// Before anything else is imported: what was compiled once is not compiled again, and a command starts in a third of the
// time. Beside the dependencies, which nobody writes but whoever may change the program; where that is not possible, without.
enableCompileCache(join(import.meta.dirname, "..", "..", "node_modules", ".cache", "rota"));

// Node would open a port for a debugger, to whoever may send a signal, and to everybody on this machine.
process.on("SIGUSR1", () => {});

await import("./command-line.ts");

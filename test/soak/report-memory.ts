/**
 * Loaded into the server before anything of its own: returns how much the heap holds for each message of the process that
 * started it. Garbage is collected first, since the heap of a healthy process goes up and down by as much as a leak.
 */
process.on("message", () => {
  globalThis.gc?.();
  process.send?.(process.memoryUsage().heapUsed);
});
// A request for the memory does not keep the server alive.
process.channel?.unref();

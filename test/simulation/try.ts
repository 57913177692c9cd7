import { runSimulation } from "./run-simulation.ts";
const from = Number(process.argv[2] ?? 1), to = Number(process.argv[3] ?? from);
let steps = 0; const began = performance.now();
for (let seed = from; seed <= to; seed++) {
  const lines: string[] = [];
  const t = performance.now();
  try {
    const r = await runSimulation({ seed, ...(process.env["TRACE"] ? { say: (l: string) => void process.stdout.write(l) } : {}) });
    steps += r.steps;
    if (process.env["V"] || r.findings.length) {
      console.log(seed, r.trace.slice(0, 8), r.steps, Math.round(performance.now() - t), "ms", "tasks", r.history.tasks.size, "events", r.history.events.length, "runs", r.history.runs.length, JSON.stringify(r.climate));
      for (const f of r.findings.slice(0, 8)) console.log("   ", f.promise, "|", f.said);
    }
  } catch (e) { console.log(seed, "THREW", e); }
}
const s = (performance.now() - began) / 1000;
console.log("seeds", to - from + 1, "steps", steps, "in", s.toFixed(1), "s =", Math.round(steps / s), "steps/s");
process.exit(0);

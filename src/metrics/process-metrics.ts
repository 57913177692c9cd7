import { performance } from "node:perf_hooks";
import type { Metric } from "./text-format.ts";

/**
 * The process, under the metric names that dashboards for Node know. All values are read on demand: nothing runs between scrapes.
 */
export function processMetrics(): Metric[] {
  const { user, system } = process.cpuUsage();
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
  const { active } = performance.eventLoopUtilization();
  return [
    one("counter", "process_cpu_seconds_total", "Time on the processor.", (user + system) / 1_000_000),
    one("gauge", "process_start_time_seconds", "When the process started.", performance.timeOrigin / 1_000),
    one("gauge", "process_resident_memory_bytes", "Memory the process takes.", rss),
    one("gauge", "nodejs_heap_size_total_bytes", "Memory that JavaScript has.", heapTotal),
    one("gauge", "nodejs_heap_size_used_bytes", "Memory that JavaScript uses.", heapUsed),
    one("gauge", "nodejs_external_memory_bytes", "Memory of objects outside of JavaScript.", external),
    one(
      "counter",
      "nodejs_eventloop_active_seconds_total",
      "Time the event loop was not idle: its rate is how busy the process is, from 0 to 1.",
      active / 1_000,
    ),
  ];
}

function one(type: Metric["type"], name: string, help: string, value: number): Metric {
  return { name, help, type, series: [{ labels: {}, value }] };
}

import { BUCKETS_SEC, type Histogram } from "./histogram.ts";

/** One metric with all its series, as Prometheus reads them. */
export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly series: readonly Series[];
}

export interface Series {
  readonly labels: Labels;
  readonly value: number | Histogram;
}

export type Labels = Readonly<Record<string, string>>;

/** The text format of Prometheus, version 0.0.4. */
export function toText(metrics: readonly Metric[]): string {
  const lines: string[] = [];
  for (const { name, help, type, series } of metrics) {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const { labels, value } of series) {
      if (typeof value === "number") lines.push(`${name}${labelText(labels)} ${value}`);
      else lines.push(...histogramLines(name, labels, value));
    }
  }
  return `${lines.join("\n")}\n`;
}

function histogramLines(name: string, labels: Labels, histogram: Histogram): string[] {
  const counts = histogram.cumulated();
  const bounds = [...BUCKETS_SEC.map(String), "+Inf"];
  return [
    ...bounds.map((le, index) => `${name}_bucket${labelText({ ...labels, le })} ${counts[index]}`),
    `${name}_sum${labelText(labels)} ${histogram.sumSec}`,
    `${name}_count${labelText(labels)} ${counts.at(-1)}`,
  ];
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

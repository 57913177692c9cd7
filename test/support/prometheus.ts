export interface ReadMetric {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** By labels as they stand, such as `_bucket{lane="tasks",le="1"}`. */
  readonly samples: ReadonlyMap<string, number>;
}

const SAMPLE =
  /^([a-z][a-z0-9_]*?)(_bucket|_sum|_count)?(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)$/;

/** Reads the text format of Prometheus, strictly: whatever is not as it must be throws. */
export function readMetrics(text: string): Map<string, ReadMetric> {
  if (!text.endsWith("\n")) throw new Error("the text does not end with a line");
  const metrics = new Map<string, ReadMetric & { samples: Map<string, number> }>();
  const lines = text.slice(0, -1).split("\n");
  for (const [index, line] of lines.entries()) {
    const help = /^# HELP (\S+) (.+)$/.exec(line);
    if (help !== null) {
      const [, name = "", sentence = ""] = help;
      const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(lines[index + 1] ?? "");
      if (type?.[1] !== name || metrics.has(name)) throw new Error(`not a metric of its own: ${line}`);
      metrics.set(name, { name, help: sentence, type: type[2] as string, samples: new Map() });
      continue;
    }
    if (line.startsWith("# TYPE ")) continue;
    const [, plain = "", suffix = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
    const current = [...metrics.values()].at(-1);
    const [name, key] = current?.type === "histogram" ? [plain, suffix + labels] : [plain + suffix, labels];
    if (current?.name !== name || !Number.isFinite(Number(value)) || current.samples.has(key))
      throw new Error(`not a sample of ${current?.name}: ${line}`);
    current.samples.set(key, Number(value));
  }
  return metrics;
}

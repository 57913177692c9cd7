import { expect, test } from "vitest";
import { Histogram } from "./histogram.ts";
import { toText } from "./text-format.ts";

test("writes every metric with its help, its type and its series", () => {
  const text = toText([
    {
      name: "a_total",
      help: "What a is.",
      type: "counter",
      series: [{ labels: { x: "1", y: "2" }, value: 3 }],
    },
    { name: "b_bytes", help: "What b is.", type: "gauge", series: [{ labels: {}, value: 0.5 }] },
    { name: "c_total", help: "Nothing yet.", type: "counter", series: [] },
  ]);
  expect(text).toBe(`# HELP a_total What a is.
# TYPE a_total counter
a_total{x="1",y="2"} 3
# HELP b_bytes What b is.
# TYPE b_bytes gauge
b_bytes 0.5
# HELP c_total Nothing yet.
# TYPE c_total counter
`);
});

test("escapes what would end a label", () => {
  const series = [{ labels: { agent: 'a"b\\c\nd' }, value: 1 }];
  expect(toText([{ name: "a", help: "h", type: "gauge", series }])).toContain(
    'a{agent="a\\"b\\\\c\\nd"} 1\n',
  );
});

test("adds up the buckets of a histogram, whose bounds include what lies on them", () => {
  const histogram = new Histogram();
  for (const ms of [0, 1, 2, 5, 900_000]) histogram.observe(ms);
  const lines = toText([
    {
      name: "t_seconds",
      help: "h",
      type: "histogram",
      series: [{ labels: { lane: "l" }, value: histogram }],
    },
  ]).split("\n");
  expect(lines).toContain('t_seconds_bucket{lane="l",le="0.001"} 2');
  expect(lines).toContain('t_seconds_bucket{lane="l",le="0.005"} 4');
  expect(lines).toContain('t_seconds_bucket{lane="l",le="600"} 4');
  expect(lines).toContain('t_seconds_bucket{lane="l",le="+Inf"} 5');
  expect(lines).toContain('t_seconds_sum{lane="l"} 900.008');
  expect(lines).toContain('t_seconds_count{lane="l"} 5');
});

import { describe, expect, test } from "vitest";
import { judge, type Quantity, sparks } from "./curve.ts";

const MEMORY: Quantity = { name: "memory", unit: "MiB", fault: "growing", slack: 0.1, slackAtLeast: 4 };
const RATE: Quantity = { name: "tasks ended", unit: "/s", fault: "falling", slack: 0.1, slackAtLeast: 1 };

/** One value for each look. */
function curve(looks: number, at: (place: number) => number): number[] {
  return Array.from({ length: looks }, (_, place) => at(place));
}

/** Goes up and down: a measured number never stands still. */
const noise = (place: number) => ((place * 7) % 5) - 2;

describe("judge", () => {
  test("calls level what moves up and down around the same value", () => {
    const { verdict, thirds } = judge(
      MEMORY,
      curve(90, (place) => 100 + noise(place)),
    );
    expect(verdict).toBe("level");
    for (const third of thirds) expect(third).toBeCloseTo(100, 0);
  });

  test("calls growing what grows a little all the time, noise or not", () => {
    expect(
      judge(
        MEMORY,
        curve(90, (place) => 100 + place / 4 + noise(place)),
      ).verdict,
    ).toBe("growing");
  });

  test("calls level what grew while it warmed up and then stayed", () => {
    expect(
      judge(
        MEMORY,
        curve(90, (place) => (place < 25 ? 60 + place * 2 : 110 + noise(place))),
      ).verdict,
    ).toBe("level");
  });

  test("is not impressed by a single peak, wherever it is", () => {
    for (const peak of [2, 45, 88]) {
      const values = curve(90, (place) => (place === peak ? 10_000 : 100));
      expect(judge(MEMORY, values).verdict).toBe("level");
    }
  });

  test("takes small numbers for level that would double by one", () => {
    const handles: Quantity = { ...MEMORY, name: "latency", unit: "ms", slack: 0.5, slackAtLeast: 2 };
    expect(
      judge(
        handles,
        curve(30, (place) => 1 + place / 30),
      ).verdict,
    ).toBe("level");
  });

  test("minds a rate that falls and not one that rises", () => {
    expect(
      judge(
        RATE,
        curve(30, (place) => 100 - place),
      ).verdict,
    ).toBe("falling");
    expect(
      judge(
        RATE,
        curve(30, (place) => 100 + place),
      ).verdict,
    ).toBe("level");
    expect(
      judge(
        MEMORY,
        curve(30, (place) => 100 - place),
      ).verdict,
    ).toBe("level");
  });

  test("says so when there is too little data", () => {
    expect(
      judge(
        MEMORY,
        curve(8, (place) => place * 100),
      ).verdict,
    ).toBe("too few looks");
  });
});

describe("sparks", () => {
  test("draws the lowest and the highest value at the edges", () => {
    expect(
      sparks(
        curve(8, (place) => place),
        8,
      ),
    ).toBe("▁▂▃▄▅▆▇█");
  });

  test("draws a curve that moves by a few percent as nearly flat", () => {
    expect(new Set(sparks(curve(40, (place) => 100 + (place % 3)))).size).toBe(1);
  });

  test("takes the mean of neighbours where there are more looks than signs", () => {
    expect(sparks([0, 0, 8, 8, 0, 0], 3)).toBe("▁█▁");
  });

  test("draws zeros and a single look", () => {
    expect(sparks([0, 0, 0])).toBe("▁▁▁");
    expect(sparks([5])).toBe("▁");
  });
});

import { afterEach, expect, test, vi } from "vitest";

afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

test("the date fields of the browser mean UTC while times are shown in UTC", async () => {
  vi.stubEnv("TZ", "Asia/Tokyo");
  vi.stubGlobal("localStorage", { getItem: () => "utc", setItem: () => {} });
  // Another test file of this process may have imported it for another zone.
  vi.resetModules();
  const { fromField, toField } = await import("./zone.ts");
  const at = Date.parse("2026-03-08T12:00:01.500Z");
  expect(toField(at)).toBe("2026-03-08T12:00:01");
  expect(fromField("2026-03-08T12:00")).toBe(Date.parse("2026-03-08T12:00Z"));
  expect(fromField("")).toBeNaN();
  vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => {} });
  vi.resetModules();
  const mine = await import("./zone.ts");
  expect(mine.toField(at)).toBe("2026-03-08T21:00:01");
  expect(mine.fromField("2026-03-08T21:00")).toBe(Date.parse("2026-03-08T12:00Z"));
});

import { expect, test, vi } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import type { DoctorOptions } from "../../interface/doctor.ts";
import { RotaError } from "../../model/errors.ts";

test.each(["application/json", "text/event-stream"])(
  "the examination stops when a caller that wants %s closes the connection",
  async (accept) => {
    const { rota, url } = await openTestServer({ start: false });
    const asked = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<void>();
    vi.spyOn(rota, "doctor").mockImplementation(({ signal }: DoctorOptions = {}) => {
      asked.resolve();
      return new Promise((_, reject) => {
        signal?.addEventListener("abort", () => {
          stopped.resolve();
          reject(signal.reason);
        });
      });
    });
    const leaving = new AbortController();
    const answer = fetch(`${url}/v1/doctor`, { headers: { accept }, signal: leaving.signal });
    await asked.promise;
    leaving.abort();
    await expect(answer.then((response) => response.text())).rejects.toThrow();
    await stopped.promise;
  },
);

test("progress comes as events, a percent at a time, and the report at the end", async () => {
  const { rota, url } = await openTestServer({ start: false });
  const { doctor } = rota;
  vi.spyOn(rota, "doctor").mockImplementation(async ({ onProgress, ...options }: DoctorOptions = {}) => {
    for (let done = 1; done <= 1_000; done += 1) onProgress?.({ check: "counters", done, total: 1_000 });
    return doctor.call(rota, options);
  });
  const answer = await fetch(`${url}/v1/doctor`, { headers: { accept: "text/event-stream" } });
  expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const events = (await answer.text()).split("\n\n").filter(Boolean);
  expect(events.filter((event) => event.startsWith("event: progress"))).toHaveLength(101);
  expect(events.at(-1)).toMatch(/^event: report\ndata: \{"ok":true,"checks":\[/);
});

test("what goes wrong after the stream has begun is an event, too", async () => {
  const { rota, url } = await openTestServer({ start: false });
  vi.spyOn(rota, "doctor").mockRejectedValue(new RotaError("storage_unavailable", "it is away"));
  const answer = await fetch(`${url}/v1/doctor`, { headers: { accept: "text/event-stream" } });
  expect(await answer.text()).toContain(
    'event: error\ndata: {"code":"storage_unavailable","error":"it is away"',
  );
});

test("what fails unexpectedly after the stream has begun is in the log", async () => {
  const { rota, url, log } = await openTestServer({ start: false });
  vi.spyOn(rota, "doctor").mockRejectedValue(new TypeError("a bug"));
  const answer = await fetch(`${url}/v1/doctor`, { headers: { accept: "text/event-stream" } });
  expect(await answer.text()).toContain("the doctor's check failed; the log of this node has the details");
  expect(log.messages("error")).toEqual(["the doctor's check failed"]);
});

import { describe, expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { statsSeries } from "../../api/stats.ts";

/** Runs a task to its end and has it counted. */
async function withOneDone() {
  const server = await openTestServer();
  const { rota, clock } = server;
  const { taskId } = await rota.tasks.submit({ agentId: "index", message: "hello" });
  await rota.tasks.wait(taskId);
  await clock.advance(5_000);
  return server;
}

describe("GET /v1/stats/series", () => {
  test("has what happened by minute, at most five seconds later", async () => {
    const { ask } = await withOneDone();
    const { status, body } = await ask(
      "/v1/stats/series?metrics=submitted,done,waitMs,tokens&by=lane&from=2025-12-31T23:59:30Z&to=2026-01-01T00:02:00Z",
    );
    expect([status, statsSeries.parse(body)]).toEqual([
      200,
      {
        from: "2025-12-31T23:59:00.000Z",
        step: 60,
        series: [
          { key: "main", metric: "submitted", points: [0, 1, 0] },
          { key: "main", metric: "done", points: [0, 1, 0] },
          { key: "main", metric: "waitMs", points: [null, { p50: 0, p95: 0, max: 0 }, null] },
          { key: "main", metric: "tokens", points: [0, 0, 0] },
        ],
      },
    ]);
  });

  test("has by default an hour of the usual metrics, in one series each", async () => {
    const { ask } = await withOneDone();
    const { body } = await ask("/v1/stats/series");
    const { from, series } = statsSeries.parse(body);
    expect(from).toBe("2025-12-31T23:01:00.000Z");
    expect(series.map(({ key, metric, points }) => [key, metric, points.length, points.at(-1)])).toEqual([
      ["all", "submitted", 60, 1],
      ["all", "started", 60, 1],
      ["all", "done", 60, 1],
      ["all", "failed", 60, 0],
    ]);
  });

  test.each([
    ["metrics=done,dnoe", "metrics", "did you mean `done`?"],
    ["metrics=", "metrics", "known are `submitted`"],
    ["metrics=cost", "metrics", "known are `submitted`"],
    ["by=tenant", "by", "must be none, lane or agent"],
    ["step=300", "step", "must be 60, 3600 or 86400"],
    ["step=minute", "step", 'not "minute"'],
    ["from=yesterday", "from", "RFC 3339"],
    ["to=1767225600", "to", "RFC 3339"],
    ["from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "to", "after `from`"],
    ["from=2025-12-01T00:00:00Z", "from", "1500 points at most: take a larger `step`"],
    ["since=2025-12-01T00:00:00Z", "since", "unknown"],
  ])("refuses %s and names the field", async (query, field, message) => {
    const { ask } = await openTestServer({ start: false });
    const { status, body } = await ask(`/v1/stats/series?${query}`);
    expect([status, body.code, body.details.field]).toEqual([400, "invalid_field", field]);
    expect(body.error).toContain(message);
  });

  test("is for viewers, operators and admins, and not for agents", async () => {
    const { key, askWith } = await openKeyedServer({ start: false });
    const status = async (role: "viewer" | "operator" | "admin" | "agent") => {
      const own = await key(role === "agent" ? { role, agentId: "index" } : { role });
      return (await askWith(own, "/v1/stats/series")).status;
    };
    expect(
      await Promise.all([status("viewer"), status("operator"), status("admin"), status("agent")]),
    ).toEqual([200, 200, 200, 403]);
  });

  test("costs a row for each point of a key", async () => {
    const { key, askWith } = await openKeyedServer({ start: false });
    const own = await key({});
    const statuses: number[] = [];
    for (let n = 0; n < 9; n += 1) {
      const path = "/v1/stats/series?step=60&from=2025-12-30T23:00:00Z";
      statuses.push((await askWith(own, path)).status);
    }
    // 1500 rows are 30 units, of which there are 200.
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429, 429, 429]);
  });
});

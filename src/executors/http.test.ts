import { expect, test } from "vitest";
import { serve } from "../../test/support/http-server.ts";
import { runnable } from "../../test/support/run-executor.ts";
import type { Task } from "../model/task.ts";

const task = {
  taskId: "tsk_1",
  agentId: "a",
  kind: "custom",
  payload: { question: "?" },
  attempts: [],
} as unknown as Task;

function run(url: string, headers: Record<string, string> = {}): Promise<unknown> {
  return runnable({ type: "http", url, headers }).run(task);
}

test("posts the task as JSON", async () => {
  const url = await serve(({ method, url: path, headers }, response, body) => {
    const answer = {
      method,
      path,
      type: headers["content-type"],
      key: headers["x-key"],
      body: JSON.parse(body),
    };
    response
      .writeHead(200, { "content-type": "application/json; charset=utf-8" })
      .end(JSON.stringify(answer));
  });
  expect(await run(`${url}/hook`, { "x-key": "k" })).toEqual({
    method: "POST",
    path: "/hook",
    type: "application/json",
    key: "k",
    body: task,
  });
});

test.each([
  ["application/json", "[1,2]", [1, 2]],
  ["application/problem+json", '"x"', "x"],
  ["application/json", "not json", "not json"],
  ["text/plain", "[1,2]", "[1,2]"],
  ["text/html", "", ""],
])("an answer of type %s, %j, becomes %j", async (type, body, result) => {
  const url = await serve((_request, response) =>
    response.writeHead(200, { "content-type": type }).end(body),
  );
  expect(await run(url)).toEqual(result);
});

test("an answer that says no type is read as JSON if it is that", async () => {
  const url = await serve(({ url: path }, response) => response.end(path === "/json" ? '{"a":1}' : "{a:1}"));
  expect([await run(`${url}/json`), await run(url)]).toEqual([{ a: 1 }, "{a:1}"]);
});

test("JSON that is nested deeper than a result may be stays the text it is", async () => {
  const body = "[".repeat(100_000) + "]".repeat(100_000);
  const url = await serve((_request, response) => response.end(body));
  expect(await run(url)).toBe(body);
});

test("its headers go with every call, and may say another type of content", async () => {
  const url = await serve(({ headers }, response) => response.end(JSON.stringify(headers)));
  expect(await run(url, { "Content-Type": "application/vnd.task+json", "X-Key": "a" })).toMatchObject({
    "content-type": "application/vnd.task+json",
    "x-key": "a",
  });
});

test("an answer beyond a mebibyte is cut and marked, and still fits as a result", async () => {
  const url = await serve((_request, response) => response.end('"\n'.repeat(2_000_000)));
  const result = (await run(url)) as { truncated: boolean; text: string };
  expect(result.truncated).toBe(true);
  expect(result.text.startsWith('"\n"\n')).toBe(true);
  const bytes = Buffer.byteLength(JSON.stringify(result));
  expect(bytes).toBeLessThanOrEqual(1_048_576);
  expect(bytes).toBeGreaterThan(1_000_000);
});

test("a failure says what the other side said, cut at a kibibyte", async () => {
  const url = await serve(({ url: path }, response) => {
    const body = path === "/long" ? "é".repeat(5_000) : "no such thing";
    response.writeHead(404, { "retry-after": "3" }).end(body);
  });
  await expect(run(url)).rejects.toMatchObject({
    message: "HTTP 404: no such thing",
    status: 404,
    permanent: true,
    retryAfterMs: 3_000,
  });
  await expect(run(`${url}/long`)).rejects.toMatchObject({ message: `HTTP 404: ${"é".repeat(512)}…` });
});

test("a redirect is a failure", async () => {
  const url = await serve((_request, response) => response.writeHead(301, { location: "http://x/" }).end());
  await expect(run(url)).rejects.toMatchObject({ message: "HTTP 301: ", permanent: false });
});

import { expect, test } from "vitest";
import type { Task } from "../model/task.ts";
import { HttpError } from "./errors.ts";
import type { Executor, ExecutorContext } from "./executor.ts";
import { hideSecrets } from "./hide-secrets.ts";

const HEADERS = {
  authorization: "Bearer s3cret-of-the-agent",
  "x-api-key": "k-1234567890",
  "x-short": "ok",
  "content-type": "application/json",
};

function thrownBy(executor: Executor, apiKey?: string): Promise<unknown> {
  const hiding = hideSecrets(executor, { headers: HEADERS, apiKey });
  return Promise.resolve(hiding({} as Task, {} as ExecutorContext)).then(
    () => null,
    (error) => error,
  );
}

function failing(message: string): Executor {
  return () => {
    throw new HttpError(503, message, { retryAfterMs: 5 });
  };
}

test("an error does not repeat the credentials that were sent, whole or in part, and is otherwise what it was", async () => {
  const echoed = 'HTTP 503: {"authorization":"Bearer s3cret-of-the-agent","token":"s3cret-of-the-agent"}';
  const error = await thrownBy(failing(echoed));
  expect(error).toBeInstanceOf(HttpError);
  expect(error).toMatchObject({
    message: 'HTTP 503: {"authorization":"…","token":"…"}',
    status: 503,
    retryAfterMs: 5,
  });
  expect(await thrownBy(failing("bad key k-1234567890"))).toMatchObject({ message: "bad key …" });
  expect(await thrownBy(failing("bad key sk-model"), "sk-model-key")).toMatchObject({
    message: "bad key sk-model",
  });
  expect(await thrownBy(failing("bad key sk-model-key"), "sk-model-key")).toMatchObject({
    message: "bad key …",
  });
});

test("what is no secret stays readable", async () => {
  const said = "HTTP 503: ok, but application/json was not expected";
  expect(await thrownBy(failing(said))).toMatchObject({ message: said });
});

test("results, and thrown values that are no errors, are passed on as they are", async () => {
  expect(
    await thrownBy(() => {
      throw "k-1234567890";
    }),
  ).toBe("k-1234567890");
  const answering = hideSecrets(async () => "k-1234567890", { headers: HEADERS, apiKey: undefined });
  expect(await answering({} as Task, {} as ExecutorContext)).toBe("k-1234567890");
});

test("an executor that sends nothing of the kind is left as it is", () => {
  const executor: Executor = () => 1;
  expect(hideSecrets(executor, { headers: { accept: "text/event-stream" }, apiKey: undefined })).toBe(
    executor,
  );
});

import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { ConfigSource } from "./config-source.ts";
import { rotaOptions } from "./rota-options.ts";
import { watchFiles } from "./watch-files.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "rota-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

function sourceOf(values: unknown, environment: Record<string, string> = {}) {
  const folder = newFolder();
  const file = join(folder, "rota.config.json");
  const write = (text: unknown) =>
    writeFileSync(file, typeof text === "string" ? text : JSON.stringify(text));
  if (values !== undefined) write(values);
  const source = new ConfigSource({ folder, environment, flags: { "server.port": "9000" } });
  return { source, folder, file, write };
}

test("what `scheduler` does not say, or says with 0, is left out when it is read again", () => {
  const { source, write } = sourceOf({ scheduler: { maxInflight: 5, workerCount: 2 } });
  expect(source.load().config.scheduler).toMatchObject({ maxInflight: 5, workerCount: 2, maxPerAgent: 100 });
  expect(rotaOptions(source.loadAgain()).scheduler).toEqual({ maxInflight: 5, workerCount: 2 });
  write({ scheduler: { maxInflight: 0, maxPerAgent: 7, resultTTLSec: 0 } });
  expect(rotaOptions(source.loadAgain()).scheduler).toEqual({ maxPerAgent: 7 });
  write({});
  expect(rotaOptions(source.loadAgain()).scheduler).toEqual({});
});

test("of the lanes the scheduler gets those that the file or a variable says", () => {
  const { source, write } = sourceOf(
    { lanes: { cron: { concurrency: 3, total: 9 } } },
    { ROTA_LANE_MINE: "2" },
  );
  expect(source.load().config.lanes).toMatchObject({ main: { concurrency: 30 }, mine: { concurrency: 2 } });
  expect(rotaOptions(source.load()).lanes).toEqual({
    cron: { concurrency: 3, total: 9 },
    mine: { concurrency: 2 },
  });
  write({ lanes: { main: 30 } });
  expect(rotaOptions(source.loadAgain()).lanes).toEqual({
    main: { concurrency: 30 },
    mine: { concurrency: 2 },
  });
});

test("everything else has its default when it is no longer said", () => {
  const { source, write } = sourceOf({
    lanes: { main: 1, mine: 2 },
    agents: { a: {} },
    retry: { maxRetries: 0 },
    executors: { custom: { type: "echo" } },
    shutdownGraceSec: 1,
  });
  source.load();
  write({});
  expect(source.loadAgain().config).toMatchObject({
    lanes: { main: { concurrency: 30 } },
    agents: {},
    retry: { maxRetries: 3 },
    executors: {},
    shutdownGraceSec: 30,
  });
  expect(source.loadAgain().config.lanes["mine"]).toBeUndefined();
});

test("variables and flags are those of the start", () => {
  const environment: Record<string, string> = { ROTA_SCHEDULER_MAX_INFLIGHT: "3" };
  const { source, write } = sourceOf({ server: { port: 1 }, scheduler: { maxInflight: 9 } }, environment);
  expect(source.load().config).toMatchObject({ server: { port: 9_000 }, scheduler: { maxInflight: 3 } });
  environment["ROTA_SCHEDULER_MAX_INFLIGHT"] = "4";
  write({ server: { port: 2 }, scheduler: { maxInflight: 8 } });
  expect(source.loadAgain().config).toMatchObject({ server: { port: 9_000 }, scheduler: { maxInflight: 3 } });
});

test("a file that is gone, empty or half written says nothing", () => {
  const { source, write, file } = sourceOf({ agents: { a: {} } });
  source.load();
  for (const text of ["", " \n", '{"agents":']) {
    write(text);
    expect(() => source.loadAgain()).toThrow(/rota\.config\.json is (empty|not JSON)/);
  }
  rmSync(file);
  expect(() => source.loadAgain()).toThrow(
    "rota.config.json is gone: put it back, or start Rota again without it",
  );
  write({});
  expect(source.loadAgain().config.agents).toEqual({});
});

test("a file may appear later, and may change its language", () => {
  const { source, folder, file } = sourceOf(undefined);
  source.load();
  expect(source.loadAgain().config.agents).toEqual({});
  writeFileSync(file, '{"agents":{"a":{}}}');
  expect(source.loadAgain().config.agents).toEqual({ a: {} });
  renameSync(file, join(folder, "rota.config.yaml"));
  expect(source.loadAgain().config.agents).toEqual({ a: {} });
  expect(source.paths.map((path) => path.slice(folder.length + 1))).toEqual([
    "rota.config.json",
    "rota.config.yaml",
    "rota.config.yml",
  ]);
});

test("a file that was named is the only one", () => {
  const folder = newFolder();
  writeFileSync(join(folder, "rota.config.json"), "{");
  writeFileSync(join(folder, "mine.yaml"), "agents: { a: {} }");
  const source = new ConfigSource({ folder, file: "mine.yaml", environment: {} });
  expect(source.load().config.agents).toEqual({ a: {} });
  expect(source.paths).toEqual([join(folder, "mine.yaml")]);
  rmSync(join(folder, "mine.yaml"));
  expect(() => source.loadAgain()).toThrow("cannot read the configuration mine.yaml: there is no such file");
});

test("a file that comes, changes or goes is noticed within a second, once it is written", async () => {
  const folder = newFolder();
  const paths = [join(folder, "a"), join(folder, "b")] as const;
  const clock = new ManualClock();
  let changeCount = 0;
  const stop = watchFiles(paths, () => changeCount++, { clock });
  await clock.advance(10_000);
  expect(changeCount).toBe(0);
  const changes = [
    () => writeFileSync(paths[1], "x"),
    () => writeFileSync(paths[1], "xx"),
    () => writeFileSync(paths[0], ""),
    () => renameSync(paths[1], paths[0]),
    () => rmSync(paths[0]),
  ];
  for (const [index, change] of changes.entries()) {
    change();
    await clock.advance(1_000);
    expect(changeCount).toBe(index);
    await clock.advance(100);
    expect(changeCount).toBe(index + 1);
    await clock.advance(10_000);
    expect(changeCount).toBe(index + 1);
  }
  stop();
  expect(clock.pending).toBe(0);
});

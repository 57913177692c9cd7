import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { newPerson, newTenant, openProxy, type TestTenant, type World } from "./world.ts";

const rows = (page: Page) => page.getByRole("table", { name: "Tasks" }).locator(".lrow");

/** Counts the streams of events that a person's tabs open. */
function countStreams(context: import("playwright-core").BrowserContext): () => number {
  let count = 0;
  context.on("request", (request) => {
    if (request.url().includes("/tasks/events")) count += 1;
  });
  return () => count;
}

async function openTabs(tenant: TestTenant, world: World, count: number, withoutLocks: boolean) {
  const person = await newPerson(world, { key: (await tenant.key("operator")).key, withoutLocks });
  const streams = countStreams(person.context);
  const open = async () => {
    const page = await person.open("/tasks");
    await page.getByRole("button", { name: "Live" }).waitFor();
    return page;
  };
  // The first tab reads; the others come when it does.
  const pages = [await open(), ...(await Promise.all(Array.from({ length: count - 1 }, open)))];
  return { pages, streams };
}

export function liveTests(world: () => World): void {
  test("what happens is shown at once, without a reload", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open("/tasks");
    await page.getByText("No tasks yet").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    const { taskId } = await tenant.rota.tasks.submit({ agentId: "held", message: "just came" });
    await page.getByText("just came").waitFor();
    await page.getByRole("img", { name: "Running" }).waitFor();
    await tenant.rota.tasks.cancel(taskId);
    await page.getByRole("img", { name: "Cancelled" }).waitFor();
  });

  test("a page that is paused stays as it is, says what has come, and catches up", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.tasks.submit({ message: "before" });
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open("/tasks");
    await page.getByRole("link", { name: "before" }).waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await page.keyboard.press("p");
    await page.getByRole("button", { name: "Paused" }).waitFor();
    await tenant.rota.tasks.submit({ message: "meanwhile" });
    await page.getByRole("button", { name: "1 new" }).waitFor();
    expect(await rows(page).count()).toBe(1);
    await page.keyboard.press("p");
    await page.getByText("meanwhile").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "1 new" }).count()).toBe(0);
  });

  test("a list that is scrolled down does not jump: new rows wait behind a button", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    for (let batch = 0; batch < 3; batch++) {
      await tenant.rota.tasks.submitBatch({
        tasks: Array.from({ length: 90 }, (_, n) => ({
          message: `row ${batch * 90 + n}`,
          runAt: "2100-01-01T00:00:00Z",
        })),
      });
    }
    const page = await open("/tasks");
    await page.getByText("row 269").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await page.evaluate(() => scrollTo({ top: 2_000 }));
    await expect.poll(() => page.getByText("row 269").count()).toBe(0);
    const top = await page.evaluate(() => scrollY);
    await tenant.rota.tasks.submit({ message: "newest" });
    await page.getByRole("button", { name: "1 new" }).click();
    await page.getByRole("link", { name: "newest" }).waitFor();
    expect(top).toBe(2_000);
    expect(await page.evaluate(() => scrollY)).toBe(0);
  });

  // A browser opens six connections to a server: with a stream for each tab, the seventh would not load.
  test.each([
    ["locks seven", 7, false],
    ["heartbeats three", 3, true],
  ])(
    "by %s tabs share one stream, and when the tab that reads it goes another reads on",
    async (_how, count, withoutLocks) => {
      const tenant = await newTenant(world());
      const { pages, streams } = await openTabs(tenant, world(), count, withoutLocks);
      expect(streams()).toBe(1);
      await tenant.rota.tasks.submit({ agentId: "held", message: "seen by all" });
      // All at once: a tab in the background is looked at once a second.
      await Promise.all(pages.map((page) => page.getByText("seen by all").waitFor()));
      // The first tab reads.
      await pages[0]?.close();
      await tenant.rota.tasks.submit({ agentId: "held", message: "seen by the rest" });
      await Promise.all(pages.slice(1).map((page) => page.getByText("seen by the rest").waitFor()));
      expect(streams()).toBe(2);
    },
  );

  test("a tab of another tenant gets nothing of it", async () => {
    const [one, other] = [await newTenant(world()), await newTenant(world())];
    const person = await newPerson(world());
    const signIn = async (key: string) => {
      const page = await person.open("/tasks");
      await page.getByLabel("API key").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("button", { name: "Live" }).waitFor();
      return page;
    };
    const streams = countStreams(person.context);
    const ours = await signIn((await one.key("viewer")).key);
    const theirs = await signIn((await other.key("viewer")).key);
    expect(streams()).toBe(2);
    await one.rota.tasks.submit({ message: "ours" });
    await ours.getByText("ours", { exact: true }).waitFor();
    await other.rota.tasks.submit({ message: "theirs" });
    await theirs.getByText("theirs", { exact: true }).waitFor();
    expect([await rows(ours).count(), await rows(theirs).count()]).toEqual([1, 1]);
  });

  test("a stream that is cut is said, and reads on where it was once there is a way", async () => {
    const tenant = await newTenant(world());
    const proxy = await openProxy(world().url);
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key, url: proxy.url });
    const page = await open("/tasks");
    await page.getByText("No tasks yet").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    proxy.cut();
    await page.getByRole("button", { name: "Offline" }).waitFor();
    await tenant.rota.tasks.submit({ message: "while it was cut" });
    proxy.restore();
    await page.getByText("while it was cut").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
  });

  test("with very many events it says that it samples, and still ends up with the truth", async () => {
    const tenant = await newTenant(world());
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    let reads = 0;
    context.on("request", (request) => {
      if (request.url().includes("/v1/tasks?")) reads += 1;
    });
    const page = await open("/tasks");
    await page.getByText("No tasks yet").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await Promise.all(
      Array.from({ length: 8 }, () =>
        tenant.rota.tasks.submitBatch({
          tasks: Array.from({ length: 90 }, () => ({ message: "one of many" })),
        }),
      ),
    );
    await page.getByRole("button", { name: "Busy: sampled" }).waitFor();
    await page.getByRole("link", { name: "Done 720" }).waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    expect(reads).toBeLessThan(10);
  });
}

import { expect, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { away } from "../../test/support/storages.ts";
import { Gate } from "../testing/signals.ts";

test("whoever asks while somebody is being told shares the examination, and the next has one of its own", async () => {
  const gate = new Gate();
  let counted = 0;
  const { rota } = await openTestRota({
    meddler: {
      before: async ({ operation }) => {
        if (operation !== "counters.recountAll") return;
        counted += 1;
        await gate.opened;
      },
    },
  });
  const asked = [rota.doctor(), rota.doctor(), rota.doctor()];
  gate.open();
  const [first, ...others] = await Promise.all(asked);
  expect(first).toMatchObject({ ok: true });
  for (const other of others) expect(other).toBe(first);
  expect(counted).toBe(1);
  expect(await rota.doctor()).toEqual(first);
  expect(counted).toBe(2);
});

test("an examination that fails is not the answer to whoever asks later", async () => {
  let isAway = true;
  const { rota } = await openTestRota({
    meddler: {
      before: ({ operation }) => {
        if (isAway && operation === "counters.recountAll") throw away();
      },
    },
  });
  await expect(rota.doctor()).rejects.toMatchObject({ code: "storage_unavailable" });
  isAway = false;
  expect(await rota.doctor()).toMatchObject({ ok: true });
});

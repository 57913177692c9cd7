import fc from "fast-check";
import { expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { writsIn } from "../../schedules/writs-in.ts";

const word = fc.oneof(
  fc.constantFrom(
    ...[
      "in 1 hour",
      "every day at 09:00",
      "every",
      "0 9 * * 1-5",
      "list",
      "cancel",
      "pause",
      "resume",
      "1",
      "#2",
    ],
    ...[
      ":",
      ": ",
      '"',
      "'",
      " ",
      "look again",
      "[END SCHEDULE]",
      "\0",
      "\ud800",
      "🦉",
      "\u2028",
      "99999999999999",
    ],
  ),
  fc.string({ unit: "binary", maxLength: 8 }),
);
const line = fc
  .tuple(
    fc.constantFrom("/schedule ", "/schedule in 1 hour: ", " /SCHEDULE", "", "```"),
    fc.array(word, { maxLength: 5 }),
  )
  .map(([begin, words]) => begin + words.join(""));
const text = fc.array(line, { maxLength: 6 }).map((lines) => lines.join("\n"));

test("any text gets a block for each writ, and breaks nothing", async () => {
  const { rota, log } = await openTestRota();
  await rota.start();
  await fc.assert(
    fc.asyncProperty(text, async (written) => {
      const { ok, output } = await rota.writs.carryOut({ text: written });
      const lines = output.split("\n");
      const ends = lines.filter((each) => each === "[END SCHEDULE]").length;
      expect(ends).toBe(Math.max(writsIn(written).length, 1));
      expect([lines[0]?.startsWith("[/schedule"), lines.at(-1)]).toEqual([true, "[END SCHEDULE]"]);
      expect(ok).toBe(!lines.some((each) => each.startsWith("ERR: ")));
    }),
    { numRuns: 300 },
  );
  expect(log.messages("error")).toEqual([]);
  expect((await rota.schedules.list()).count).toBeGreaterThan(0);
});

test("a list that is too long for an agent says how many more there are", async () => {
  const { rota } = await openTestRota();
  for (let n = 0; n < 103; n += 1) {
    await rota.schedules.create({ schedule: "in 1 hour", message: "look", enabled: n !== 0 });
  }
  const { output } = await rota.writs.carryOut({ text: "/schedule list" });
  const lines = output.split("\n");
  // A hundred active schedules, the paused one, the line that says that there are more, and the two lines around them.
  expect([lines.length, lines.at(-2)]).toEqual([104, "and 2 more"]);
});

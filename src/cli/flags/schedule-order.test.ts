import { expect, test } from "vitest";
import { scheduleOrder } from "./schedule-order.ts";

test.each([
  [["every monday at 09:00: summarise the week"], "every monday at 09:00", "summarise the week"],
  [
    ["every", "monday", "at", "09:00:", "summarise", "the", "week"],
    "every monday at 09:00",
    "summarise the week",
  ],
  [['"in 1 hour": look: again'], "in 1 hour", "look: again"],
  [["in 1 hour", "look again"], "in 1 hour", "look again"],
  [["every monday at 09:00", "note: buy milk"], "every monday at 09:00", "note: buy milk"],
  [["hourly:", "look"], "hourly", "look"],
  [["in 5 min:\nfirst line\nsecond line"], "in 5 min", "first line\nsecond line"],
])("%j says when and what", (words, phrase, message) => {
  expect(scheduleOrder(words)).toEqual({ phrase, message });
});

test.each([
  [["in 1 hour"], /^write a colon and a space between .*; or write them as two arguments$/],
  [["in 1 hour:"], /^the message after the colon is missing$/],
  [["list"], /to list them: rota schedules$/],
  [["cancel", "42"], /to delete one: rota schedules delete 42$/],
  [["pause 42"], /to pause one: rota schedules pause 42$/],
])("%j is refused with what to write instead", (words, sentence) => {
  expect(() => scheduleOrder(words)).toThrow(sentence);
});

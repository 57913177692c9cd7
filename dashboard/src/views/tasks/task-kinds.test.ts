import { expect, test } from "vitest";
import { KIND_FIELDS } from "../../../../src/model/input/task-schema.ts";
import { KINDS } from "./task-kinds.ts";

test("the form knows each kind of task with its own fields, the required one first", () => {
  const { batch, ...kinds } = KINDS;
  expect(batch).toEqual(["tasks"]);
  const known = Object.values(KIND_FIELDS).map((fields) => Object.keys(fields));
  expect(Object.values(kinds).toSorted()).toEqual(known.toSorted());
  expect(Object.keys(kinds).toSorted()).toEqual(known.map(([first]) => first).toSorted());
});

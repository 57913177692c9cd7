import { afterAll, describe } from "vitest";
import { prepareDatabaseCopies } from "../../test/postgres/database-copies.ts";
import { LentStorages } from "../../test/postgres/lent-storages.ts";
import { describeProperties } from "./conformance/property.ts";
import { openPostgres } from "./postgres/open.ts";

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
const storages = new LentStorages(copies);
afterAll(async () => {
  await storages.close();
  await copies.drop();
});
for (let i = 0; i < 12; i += 1)
  describe(`round ${i}`, () =>
    describeProperties({ propertyRuns: 100000, open: (clock) => storages.lend(clock) }));

import { afterAll } from "vitest";
import { prepareDatabaseCopies } from "../../test/postgres/database-copies.ts";
import { describeStorage } from "./conformance/index.ts";
import { openPostgres } from "./postgres/open.ts";

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
afterAll(() => copies.drop());

describeStorage("PostgreSQL", {
  propertyRuns: 25,
  async open(clock) {
    const database = await copies.copy();
    const storage = await openPostgres({ url: database.url, clock });
    const dispose = async () => {
      await storage.close();
      await database.drop();
    };
    return { storage, dispose };
  },
});

import { Client } from "pg";
import type { Clock } from "../../src/model/clock.ts";
import { openPostgres } from "../../src/storage/postgres/connection/open.ts";
import type { Storage } from "../../src/storage/storage.ts";
import type { DatabaseCopies } from "./database-copies.ts";

export interface LentStorage {
  storage: Storage;
  /** Empties it for the next who needs one. */
  dispose(): Promise<void>;
}

/**
 * Lends open storages, one at a time to each, and empties them in between. Connecting and warming up takes ten times as
 * long as most tests of the storage, so that doing it for each of them would be most of the time they take.
 */
export class LentStorages {
  readonly #copies: DatabaseCopies;
  readonly #all: Loan[] = [];
  readonly #free: Loan[] = [];

  constructor(copies: DatabaseCopies) {
    this.#copies = copies;
  }

  async lend(clock: Clock): Promise<LentStorage> {
    const loan = this.#free.pop() ?? (await this.#make(clock));
    loan.clock.lender = clock;
    const dispose = async () => {
      await empty(loan);
      this.#free.push(loan);
    };
    return { storage: loan.storage, dispose };
  }

  async #make(clock: Clock): Promise<Loan> {
    const loan = await makeLoan(this.#copies, clock);
    this.#all.push(loan);
    return loan;
  }

  async close(): Promise<void> {
    for (const { storage, admin } of this.#all) await Promise.all([storage.close(), admin.end()]);
  }
}

interface Loan {
  storage: Storage;
  readonly url: string;
  readonly clock: LentClock;
  readonly admin: Client;
}

/** A clock that shows the time of whoever has the storage now. */
class LentClock implements Clock {
  lender: Clock | undefined;

  now(): number {
    return this.#lender().now();
  }

  monotonic(): number {
    return this.#lender().monotonic();
  }

  setTimer(delayMs: number, callback: () => void) {
    return this.#lender().setTimer(delayMs, callback);
  }

  #lender(): Clock {
    if (this.lender === undefined) throw new Error("No test has this storage now.");
    return this.lender;
  }
}

async function makeLoan(copies: DatabaseCopies, lender: Clock): Promise<Loan> {
  const { url } = await copies.copy();
  const clock = new LentClock();
  clock.lender = lender;
  const admin = new Client({ connectionString: url });
  await admin.connect();
  return { storage: await openPostgres({ url, clock }), url, clock, admin };
}

async function empty(loan: Loan): Promise<void> {
  await loan.admin.query(EMPTY);
  // A test may have closed it, to see what it does then.
  const isOpen = await loan.storage.now().then(
    () => true,
    () => false,
  );
  if (!isOpen) loan.storage = await openPostgres({ url: loan.url, clock: loan.clock });
  loan.clock.lender = undefined;
}

/** Only what has rows: to truncate a table writes new files for it and its indexes, and most tests fill few of them. */
const EMPTY = `
do $$
declare
  v_table text;
  v_has_rows boolean;
  v_filled text[] := '{}';
begin
  for v_table in
    select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'rota' and tablename <> 'schema_version'
  loop
    execute 'select exists (select 1 from ' || v_table || ')' into v_has_rows;
    if v_has_rows then v_filled := v_filled || v_table; end if;
  end loop;
  execute 'truncate ' || array_to_string(v_filled, ', ') || ' cascade';
  insert into rota.tenant (id, name, created_at, updated_at) values ('default', 'default', 0, 0);
  insert into rota.ability default values;
end $$`;

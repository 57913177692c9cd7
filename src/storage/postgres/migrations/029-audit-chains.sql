-- What was refused, where requests come from, and chains of hashes: each node membership has one, in which every entry holds the hash
-- of the one before it. Null: of before there were chains.
alter table audit_entry
  add column address        text,
  add column status         integer,
  add column count          integer not null default 1 check (count > 0),
  add column chain          text collate "C",
  add column number         bigint check ((chain is null) = (number is null)),
  add column previous_hash  text check ((chain is null) = (previous_hash is null)),
  add column hash           text check ((chain is null) = (hash is null));
create unique index audit_by_chain on audit_entry (chain, number);

-- Where the rest of a chain begins whose oldest entries were deleted for their age.
create table audit_anchor (
  chain   text collate "C" primary key,
  number  bigint not null,
  hash    text not null
);

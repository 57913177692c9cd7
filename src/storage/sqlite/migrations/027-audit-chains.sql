-- What was refused, where requests come from, and chains of hashes: each node membership has one, in which every entry holds the hash
-- of the one before it. Null: of before there were chains.
alter table audit_entry add column address text;
alter table audit_entry add column status integer;
alter table audit_entry add column count integer not null default 1 check (count > 0);
alter table audit_entry add column chain text;
alter table audit_entry add column number integer check ((chain is null) = (number is null));
alter table audit_entry add column previous_hash text check ((chain is null) = (previous_hash is null));
alter table audit_entry add column hash text check ((chain is null) = (hash is null));
create unique index audit_by_chain on audit_entry (chain, number);

-- Where the rest of a chain begins whose oldest entries were deleted for their age.
create table audit_anchor (
  chain   text primary key,
  number  integer not null,
  hash    text not null
) strict, without rowid;

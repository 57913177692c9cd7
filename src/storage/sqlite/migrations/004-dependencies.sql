alter table task add column dependencies integer not null default 0;    -- how many others it depends on
alter table task add column unmet integer not null default 0            -- those of them that are not done, or not known
  check (unmet between 0 and dependencies and (unmet > 0 or resting_state <> 'waiting_dependency'));
alter table task add column has_dependants integer not null default 0 check (has_dependants in (0, 1));
-- Copied, and set by dependants that come later: an end need not read the task to know.
alter table lease add column has_dependants integer not null default 0 check (has_dependants in (0, 1));

-- Who depends on whom, as long as both are there. Unknown parents have no row.
create table dependency (
  parent_seq  integer not null,
  child_seq   integer not null,
  primary key (parent_seq, child_seq)
) strict, without rowid;
create index dependency_by_child on dependency (child_seq, parent_seq);

-- Ends that dependants have yet to hear of: all up to after_seq have. A graph of any size is worked off in slices.
create table release (
  seq         integer primary key autoincrement,
  parent_seq  integer not null,
  error       text,                                -- why they are cancelled; null: the parent is done
  after_seq   integer not null default 0
) strict;

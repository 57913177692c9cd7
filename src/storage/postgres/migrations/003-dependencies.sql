alter table task
  add column dependencies integer not null default 0,        -- how many others it depends on
  add column unmet integer not null default 0,               -- those of them that are not done, or not known
  add column has_dependants boolean not null default false,
  add check (unmet between 0 and dependencies and (unmet > 0 or resting_state <> 'waiting_dependency'));

-- Who depends on whom, as long as both are there. Unknown parents have no row.
create table dependency (
  parent_seq  bigint not null,
  child_seq   bigint not null,
  primary key (parent_seq, child_seq)
);
create index dependency_by_child on dependency (child_seq, parent_seq);

-- Ends that dependants have yet to hear of: all up to after_seq have. A graph of any size is worked off in slices.
create table release (
  seq         bigint generated always as identity primary key,
  parent_seq  bigint not null,
  error       text,                                -- why they are cancelled; null: the parent is done
  after_seq   bigint not null default 0
);

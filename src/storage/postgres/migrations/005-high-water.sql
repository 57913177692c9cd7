-- The highest number of an event that pruning has deleted: how far the log reached, although it may be empty now.
create table high_water (
  name   text collate "C" primary key,
  value  bigint not null
);

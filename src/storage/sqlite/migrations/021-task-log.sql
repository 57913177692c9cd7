-- What executors log, in pieces as they were written together. Older pieces of an attempt are deleted when it has too many.
create table task_log (
  task_seq  integer not null,
  attempt   integer not null check (attempt > 0),
  last_n    integer not null,                      -- the number of its last line; they go up by one within a piece
  count     integer not null check (count > 0 and count <= last_n),
  bytes     integer not null,
  lines     text not null,                         -- a JSON array of [at, level, text]
  primary key (task_seq, attempt, last_n)
) strict;

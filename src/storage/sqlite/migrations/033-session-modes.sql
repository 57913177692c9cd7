-- A column cannot be given another check: a new one takes its place. Two more modes.
alter table session add column usual_mode text
  check (usual_mode = 'queue' or usual_mode = 'followup' or usual_mode = 'interrupt' or usual_mode = 'steer' or usual_mode = 'collect');
update session set usual_mode = mode where mode is not null;
alter table session drop column mode;
alter table session rename column usual_mode to mode;

-- Of a message: until when a running attempt of its session may take it, null: it may not; the task whose attempt has taken it;
-- and whether later messages may be added to it while it waits.
alter table task add column steer_until integer;
alter table task add column taken_by integer;
alter table task add column collects integer not null default 0 check (collects in (0, 1));
create index task_steered on task (session, place) where steer_until is not null and completed_at is null;

-- Whether the answers of its runs are added to its session, and the runs themselves are in a session of the schedule.
alter table schedule add column post_to_session integer not null default 0 check (post_to_session in (0, 1));

-- What the runs of a schedule are beside a message, and when a schedule has had enough.
alter table schedule add column work text;                 -- JSON; null: the message
alter table schedule add column lane text;                 -- null: that of runs
alter table schedule add column priority integer;          -- null: the default
alter table schedule add column metadata text;             -- JSON
alter table schedule add column callback_url text;
alter table schedule add column max_runs integer check (max_runs > 0);
alter table schedule add column until_at integer;          -- the last moment that may fire
alter table schedule add column pause_after_failures integer check (pause_after_failures >= 0);
alter table schedule add column consecutive_failures integer not null default 0 check (consecutive_failures >= 0);
alter table schedule add column paused_reason text check (paused_reason is null or status = 'paused');

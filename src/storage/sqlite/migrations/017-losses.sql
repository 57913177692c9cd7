-- How often the process that ran a task died with it.
alter table task add column losses integer not null default 0 check (losses >= 0);
-- Tasks that run alone in their process are in lines of their own, which are never startable; see alone-line.ts.
create index line_alone on line (last_served, id) where substr(kind, 1, 6) = 'alone:';

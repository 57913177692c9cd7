-- The place that its last reset found: a task with a later one is of the generation that it began.
alter table session add column generation_place integer not null default 0;
-- Of older resets only this is known: it was there, or a stop has moved it since.
update session set generation_place = cutoff where generation > 0;

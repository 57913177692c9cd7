-- How many sessions a tenant may have that stay without tasks. Null: what maxSessionsOf says.
alter table tenant add column max_sessions integer check (max_sessions >= 0);
update session set pinned = true where max_concurrent is not null and not pinned;
create index session_pinned on session (('' || tenant)) where pinned;

-- What signs a tenant's callbacks: the newest secret, and the one before it for a while.
create table webhook_secret (
  tenant       text not null,
  is_previous  integer not null check (is_previous in (0, 1)),
  secret       text,                               -- null: the one of the configuration
  expires_at   integer,                            -- null: it signs until the next rotation
  primary key (tenant, is_previous),
  check ((is_previous = 1) = (expires_at is not null)),
  check (secret is not null or is_previous = 1)
) strict, without rowid;
-- The configured secret signed everybody's callbacks so far: receivers of other tenants than the default one have 7 days.
insert into webhook_secret (tenant, is_previous, expires_at)
select id, 1, cast(unixepoch('subsec') * 1000 as integer) + 604800000 from tenant where id <> 'default';

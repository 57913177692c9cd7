-- What signs a tenant's callbacks: the newest secret, and the one before it for a while.
create table webhook_secret (
  tenant       text collate "C" not null,
  is_previous  boolean not null,
  secret       text,                               -- null: the one of the configuration
  expires_at   bigint,                             -- null: it signs until the next rotation
  primary key (tenant, is_previous),
  check (is_previous = (expires_at is not null)),
  check (secret is not null or is_previous)
);
-- The configured secret signed everybody's callbacks so far: receivers of other tenants than the default one have 7 days.
insert into webhook_secret (tenant, is_previous, expires_at)
select id, true, floor(extract(epoch from clock_timestamp()) * 1000)::bigint + 604800000 from tenant where id <> 'default';

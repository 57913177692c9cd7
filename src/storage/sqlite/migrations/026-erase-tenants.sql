-- Being deleted: whatever process starts next goes on with it.
alter table tenant add column deleting integer not null default 0 check (deleting in (0, 1));

-- A digest of the subject where the caller chose its name, like the key of a session: when the tenant is deleted, the name is erased and
-- the digest stays. Empty: of before there were digests.
alter table audit_entry add column subject_digest text;
update audit_entry set subject_digest = ''
 where subject is not null
   and (route like '%{key}%' or route like '%{name}%' or route like '% /v1/agents%' or route like '% /v1/writs%');
create index audit_erasable on audit_entry (tenant, seq) where subject_digest is not null and subject is not null;

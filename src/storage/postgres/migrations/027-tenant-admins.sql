-- Keys of the role admin exist in the default tenant only. Those of other tenants manage their own tenant from now on; the audit log
-- of that tenant and of the default tenant names each.
insert into audit_entry (at, tenant, key_id, route, subject)
select floor(extract(epoch from clock_timestamp()) * 1000)::bigint, l.tenant, null, 'upgrade: admin becomes tenant-admin', k.id
  from api_key k join (select id as tenant from tenant) l on l.tenant in (k.tenant, 'default')
 where k.role = 'admin' and k.tenant <> 'default'
 order by k.id, l.tenant;
update api_key set role = 'tenant-admin' where role = 'admin' and tenant <> 'default';

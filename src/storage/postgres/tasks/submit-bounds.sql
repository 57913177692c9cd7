-- Counts new and retried tasks for their owner. Raises an exception if that exceeds a bound. The caller holds the write lock.
create function count_bounded(p_now bigint, p_bounds json, p_seqs bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_tenant text := p_bounds ->> 'tenant';
  v_owner text := p_bounds ->> 'owner';
  v_count integer := coalesce(cardinality(p_seqs), 0);
  v_minute bigint := p_now / 60000;
  v_max bigint;
  v_used bigint;
begin
  if v_count = 0 then return; end if;
  v_max := (p_bounds ->> 'maxSubmitsPerHour')::bigint;
  if v_max is not null then
    insert into bounded_minute (tenant, owner, minute, submits) values (v_tenant, v_owner, v_minute, v_count)
    on conflict (tenant, owner, minute) do update set submits = bounded_minute.submits + excluded.submits;
    select sum(submits) into v_used from bounded_minute
     where tenant = v_tenant and owner = v_owner and minute > v_minute - :SUBMIT_MINUTES;
    if v_used > v_max then
      perform refuse_bounded(p_now, 'maxSubmitsPerHour', v_max, v_used - v_count, (
        select (min(minute) + :SUBMIT_MINUTES) * 60000
          from (select minute, sum(submits) over (order by minute) as freed from bounded_minute
                 where tenant = v_tenant and owner = v_owner and minute > v_minute - :SUBMIT_MINUTES) m
         where freed >= v_used - v_max));
    end if;
  end if;
  v_max := (p_bounds ->> 'maxOpenTasks')::bigint;
  if v_max is not null then
    insert into bounded_task (tenant, owner, task_seq, at) select v_tenant, v_owner, seq, p_now from unnest(p_seqs) seq
    on conflict do nothing;
    delete from bounded_task b where b.tenant = v_tenant and b.owner = v_owner and :IS_OPEN is not true;
    select count(*) into v_used from bounded_task where tenant = v_tenant and owner = v_owner;
    if v_used > v_max then perform refuse_bounded(p_now, 'maxOpenTasks', v_max, v_used - v_count, null); end if;
  end if;
  v_max := (p_bounds #>> '{descendants,max}')::bigint;
  if v_max is not null then
    select count(*) into v_used from task where root_task = p_bounds #>> '{descendants,root}' and tenant || '' = v_tenant;
    if v_used > v_max then perform refuse_bounded(p_now, 'maxDescendants', v_max, v_used - v_count, null); end if;
  end if;
end $$;

create function refuse_bounded(p_now bigint, p_bound text, p_max bigint, p_used bigint, p_retry_at bigint)
returns void language plpgsql as $$
begin
  raise exception '% is exceeded', p_bound using errcode = ':BOUND_EXCEEDED',
    detail = json_build_object('bound', p_bound, 'max', p_max, 'used', p_used, 'retryAt', p_retry_at, 'now', p_now);
end $$;

-- Forgets what no bound counts any more. Open tasks keep their rows, however old they are.
create function prune_bounded(p_now bigint, p_cutoff bigint, p_limit integer) returns void language plpgsql as $$
begin
  delete from bounded_task where ctid = any (array(
    select b.ctid from bounded_task b where b.at < p_cutoff and :IS_OPEN is not true limit p_limit));
  delete from bounded_minute where minute <= p_now / 60000 - :SUBMIT_MINUTES;
end $$;

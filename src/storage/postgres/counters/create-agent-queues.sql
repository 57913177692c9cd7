-- Creates the agent queues that these tasks are the first of, and the tallies of their tenants. offset 0: what there is already is
-- looked up for each; plans made while there is little would otherwise read all of it when there is much.
create function create_agent_queues(p_forms json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_many_tenants text[];
begin
  insert into line (lane, tenant, agent, kind, served, standing, pool, agent_max, last_served)
  select x.lane, x.tenant, x.agent, x.kind, x.served, b.standing, b.pool, a.max_inflight,
         (select last_value from event_seq) - :NEWCOMER_LEAD
    from (select lane, tenant, agent, kind, served, min(n) as first
            from (select j.lane, j.tenant, j.agent, case when :IS_ALONE then j.kind else :QUEUE_KIND end as kind, s.served, j.n
                    from rows from (json_to_recordset(p_forms) as (lane text, tenant text, agent text, kind text)) with ordinality
                           as j(lane, tenant, agent, kind, n)
                   cross join lateral (select is_served(j.tenant, j.agent) as served offset 0) s) j
           group by lane, tenant, agent, kind, served) x
   cross join lateral :NEW_LABEL b
    left join lateral (select max_inflight from agent where tenant = x.tenant and agent = x.agent offset 0) a on true
   where not exists (select 1 from line n
                      where n.lane = x.lane and n.tenant = x.tenant and n.agent = x.agent and n.kind = x.kind offset 0)
   order by x.first;
  -- Several queues of one agent in one lane share the limit of the agent there.
  update line n set shared = true
   where not n.shared and n.id = any (array(
     select s.id from (select distinct lane, tenant, agent from json_to_recordset(p_forms) as j(lane text, tenant text, agent text)) j
      cross join lateral (
        select q.id, bool_or(q.kind <> '') over () as shared
          from line q where q.lane = j.lane and q.tenant = j.tenant and q.agent = j.agent offset 0) s
      where s.shared));
  with made as (
    insert into tenant_line (lane, tenant, max_inflight, lane_max, disabled, crowded, last_served)
    select x.lane, x.tenant, t.max_inflight, case when l.second_tenant then l.per_tenant end, coalesce(t.disabled, false), l.crowded,
           (select last_value from event_seq) - :NEWCOMER_LEAD
      from (select lane, tenant, min(n) as first
              from rows from (json_to_recordset(p_forms) as (lane text, tenant text)) with ordinality as j(lane, tenant, n)
             group by lane, tenant) x
      join lane l on l.name = x.lane
      left join lateral (select max_inflight, disabled from tenant where id = x.tenant offset 0) t on true
     where not exists (select 1 from tenant_line n where n.lane = x.lane and n.tenant = x.tenant offset 0)
     order by x.first
    returning lane),
  counted as (
    update lane l set tenants = l.tenants + m.tenants, crowded = l.crowded or l.tenants + m.tenants > :TENANTS_MAX
      from (select lane, count(*)::integer as tenants from made group by lane) m
     where l.name = m.lane
    returning l.name, l.tenants > :TENANTS_MAX and l.tenants - m.tenants <= :TENANTS_MAX as crowded)
  select array_agg(name) into v_many_tenants from counted where crowded;
  if v_many_tenants is not null then
    update tenant_line set crowded = true where lane = any (v_many_tenants);
    perform refresh_tenants(array(select tenant from tenant_line where lane = any (v_many_tenants)));
  end if;
  insert into tally (tenant, state, tasks)
  select x.tenant, s.state, 0
    from (select distinct tenant from json_to_recordset(p_forms) as j(tenant text)) x
   cross join unnest(array['waiting_dependency', 'delayed', 'queued', 'done', 'failed', 'cancelled', 'rejected'])
                as s(state)
   where not exists (select 1 from tally y where y.tenant = x.tenant and y.state = s.state offset 0);
end $$;

-- Chooses the tenants of the next p_count starts in a lane, one id of tenant_line for each. First come tenants with
-- pre-emption credit, then those with the fewest tasks in flight; ties go to the tenant served longest ago. p_freed: agent
-- queues of freed slots that are not recorded yet; see limits_on. urgent: a task of one of them may go ahead of
-- fairness. after_criticals: such tasks started before. p_each, p_left: what tenants may take of these starts; see
-- tenant-shares.ts.
create function share_out(
  p_lane lane, p_count integer, p_freed bigint[], p_each integer, p_left jsonb,
  out turns bigint[], out urgent boolean, out after_criticals boolean) language plpgsql stable as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_inflight integer[];
  v_served bigint[];
  v_room bigint[];
  v_credits integer[];
  v_has_credits boolean;
  v_supply bigint;
  v_base integer;
  -- Tenants that may take nothing are among the first that the index finds.
  v_passed_over bigint := case when p_left is not null and (p_lane).crowded then (
    select count(*) from jsonb_each_text(p_left) where value::integer <= 0) else 0 end;
begin
  if p_freed is null then
    select array_agg(id), array_agg(inflight), array_agg(last_served), array_agg(room), array_agg(owed), bool_or(owed > 0),
           bool_or(urgent_lines > 0), bool_or(ahead_streak <> 0), least(sum(room), p_count), min(inflight)
      into v_ids, v_inflight, v_served, v_room, v_credits, v_has_credits, urgent, after_criticals, v_supply, v_base
      from (:CANDIDATES_WITH_ROOM) c
     where room > 0;
  else
    -- The index does not contain the freed slots yet: those tenants are read besides, with the room that they will
    -- have. offset 0: a plan made while there are few tenants would otherwise read all of them when there are many.
    with freed as (select line, count(*)::integer as slots from unnest(p_freed) u(line) group by line),
    gained as (
      select n.tenant, sum(f.slots)::integer as slots, sum(:ROOM_WHEN_FREED - n.room) as supply
        from freed f cross join lateral (select * from line where id = f.line offset 0) n group by n.tenant),
    candidate as (
      select t.id
        from gained g
       cross join lateral (select id from tenant_line where lane = (p_lane).name and tenant = g.tenant offset 0) t
      union
      (:CANDIDATES_WHEN_FREED)),
    adjusted as (
      select t.id, t.inflight - coalesce(g.slots, 0) as inflight, t.last_served, t.owed, t.urgent_lines, t.ahead_streak,
             case when not t.disabled
                  then least(:TENANT_ROOM_WHEN_FREED, :LEFT_FOR_TENANT)
                  else 0 end as room
        from candidate c
       cross join lateral (select * from tenant_line where id = c.id offset 0) t
        left join gained g on g.tenant = t.tenant)
    select array_agg(id), array_agg(inflight), array_agg(last_served), array_agg(room), array_agg(owed), bool_or(owed > 0),
           bool_or(urgent_lines > 0), bool_or(ahead_streak <> 0), least(sum(room), p_count), min(inflight)
      into v_ids, v_inflight, v_served, v_room, v_credits, v_has_credits, urgent, after_criticals, v_supply, v_base
      from adjusted c where room > 0;
  end if;
  if v_ids is null then
    turns := '{}';
    return;
  end if;
  if cardinality(v_ids) = 1 then
    turns := array_fill(v_ids[1], array[v_supply::integer]);
    return;
  end if;
  turns := '{}';
  if v_has_credits then
    v_credits := array(select least(o.credit, o.room) from unnest(v_credits, v_room) with ordinality o(credit, room, n) order by o.n);
    turns := allot(v_ids, v_inflight, v_served, v_credits, p_count, v_base, least((select sum(o) from unnest(v_credits) o), p_count));
    -- A tenant served just now was served last.
    select array_agg(c.inflight + coalesce(g.starts, 0) order by c.n),
           array_agg(coalesce(4611686018427387904 + g.last, c.served) order by c.n),
           array_agg(c.room - coalesce(g.starts, 0) order by c.n)
      into v_inflight, v_served, v_room
      from unnest(v_ids, v_inflight, v_served, v_room) with ordinality c(id, inflight, served, room, n)
      left join (select id, count(*)::integer as starts, max(ordinal) as last
                   from unnest(turns) with ordinality u(id, ordinal) group by id) g on g.id = c.id;
  end if;
  turns := turns || allot(v_ids, v_inflight, v_served, v_room, p_count - cardinality(turns), v_base,
                          v_supply - cardinality(turns));
end $$;

-- Fewest in flight first; ties go to the one served longest ago. One entry for each start: the nth start of an id comes in
-- the order of (in flight + n, n, last served). p_base: the smallest number in flight. p_supply: the number of starts,
-- p_count at most.
create function allot(
  p_ids bigint[], p_inflight integer[], p_served bigint[], p_room bigint[], p_count integer, p_base integer, p_supply bigint)
returns bigint[] language plpgsql immutable as $$
declare
  v_span integer := (p_count + cardinality(p_ids) - 1) / cardinality(p_ids);
  v_turns bigint[];
begin
  if p_supply <= 0 then return '{}'; end if;
  -- Lists all starts up to a level, rather than p_count for each id, and raises the level until there are enough.
  loop
    v_turns := array(
      select c.id
        from unnest(p_ids, p_inflight, p_served, p_room) as c(id, inflight, served, room)
       cross join lateral generate_series(1, least(c.room, p_count, p_base + v_span - c.inflight)) as s(n)
       order by c.inflight + s.n, s.n, c.served, c.id limit p_count);
    if cardinality(v_turns) >= p_supply then return v_turns; end if;
    v_span := v_span * 4;
  end loop;
end $$;

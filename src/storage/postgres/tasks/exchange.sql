-- Ends attempts of a node and starts others. An exchange that finds another at work leaves a request and waits: the next one at
-- work does all requests in one step. So with more nodes steps become larger, and each task costs less.
-- p_number: of the node's own choice; p_again: the request with this number was sent before, and its response got lost.
-- p_results: one per line, empty: none. JSON text has no line breaks, and a megabyte in an array takes milliseconds to parse.
create procedure exchange(
  p_now bigint, p_node text, p_number bigint, p_again boolean, p_seqs bigint[], p_tokens bigint[], p_results text,
  p_more json, p_progress json, p_begun bigint[], p_begun_tokens bigint[], p_begun_at bigint[], p_begun_waves integer[],
  p_waves integer[], p_lanes text[],
  p_limits integer[], p_each integer[], p_left text[], p_states text[], p_ahead integer[], p_max integer, p_others boolean,
  inout result json)
language plpgsql as $$
#variable_conflict use_column
declare
  v_own exchange_request := row(
    p_node, p_number, floor(extract(epoch from clock_timestamp()) * 1000), current_schema(), false, p_seqs, p_tokens, string_to_array(p_results, E'\n', ''), p_more, p_progress, p_begun, p_begun_tokens,
    p_begun_at, p_begun_waves, p_waves, p_lanes, p_limits, p_each, p_left, p_states, p_ahead, null, null, null, null, null, null);
  v_stored exchange_request;
  v_now bigint;
  v_done record;
begin
  -- Nothing waits for the disk under the write lock. The caller flushes after the commit; readers wait (readDurably in database.ts).
  perform set_config('synchronous_commit', 'off', true);
  if p_again or not pg_try_advisory_xact_lock(:EXCHANGE_LOCK) then
    -- One that cannot share a step only waits.
    if not p_again and p_max is null and octet_length(p_results) <= :REQUEST_BYTES_MAX then
      insert into exchange_request values (v_own.*);
    end if;
    commit;
    perform set_config('synchronous_commit', 'off', true);
    perform pg_advisory_xact_lock(:EXCHANGE_LOCK);
    delete from exchange_request where node = p_node and number = p_number returning * into v_stored;
    -- It left no request, and may have started tasks that the node does not know of. They go back to the queue with the next
    -- heartbeat, so it starts no others.
    if p_again and not found then v_own.lanes := '{}'; end if;
  end if;
  if v_stored.served_at is not null then
    select v_stored as own, null::json as expired, false as settled, false as has_freed, null::text[] as freed_lanes,
           false as has_shared_events
      into v_done;
  else
    v_now := take_write_lock(p_now);
    select * into v_done from serve_exchanges(v_now, v_own, p_max, p_others);
  end if;
  commit;
  v_own := v_done.own;
  result := exchange_result(v_own.served_at, v_own.lost, v_own.started_seqs, v_own.started_tokens, v_own.started_states,
                            v_own.critical_waits, v_done.expired, v_done.settled, v_done.has_freed, v_done.freed_lanes,
                            v_stored.served_at is not null, v_done.has_shared_events);
end $$;

-- Does this exchange, and with it the exchanges of other nodes that wait for it. own: with its result. has_shared_events: it did
-- others, and the step has appended events.
create function serve_exchanges(
  p_now bigint, p_own exchange_request, p_max integer, p_others boolean,
  out own exchange_request, out expired json, out settled boolean, out has_freed boolean, out freed_lanes text[],
  out has_shared_events boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_requests exchange_request[];
  v_done record;
begin
  own := p_own;
  settled := false;
  has_freed := false;
  has_shared_events := false;
  perform 1 from node where id = p_own.node and not dead;
  if not found then
    own.served_at := p_now;
    own.lost := p_own.tokens;
    return;
  end if;
  if p_max is null and exists (select 1 from exchange_request) then
    v_requests := array(
      select r from (
        select distinct on (r.node) r from exchange_request r join node n on n.id = r.node and not n.dead
         where r.served_at is null and not r.alone and r.functions = current_schema() and r.node <> p_own.node
         order by r.node, r.number) r
       limit :REQUESTS_MAX);
  end if;
  if cardinality(v_requests) > 0 then
    begin
      select * into v_done from serve_together(p_now, p_own || v_requests);
      own := v_done.own;
      expired := v_done.expired;
      settled := v_done.settled;
      has_freed := v_done.has_freed;
      freed_lanes := v_done.freed_lanes;
      has_shared_events := v_done.has_events;
      return;
    exception when others then
      -- One of them cannot be stored. Each is done alone then, and only that one fails.
      update exchange_request r set alone = true
        from unnest(v_requests) q where r.node = q.node and r.number = q.number;
    end;
  end if;
  if p_own.progress is not null then perform write_progress(p_now, p_own.node, p_own.progress); end if;
  select f.lost, f.seqs, f.tokens, f.states, f.critical_waits, f.expired, f.settled, f.has_freed, f.freed_lanes
    into own.lost, own.started_seqs, own.started_tokens, own.started_states, own.critical_waits, expired, settled, has_freed, freed_lanes
    from finish_and_claim(
           p_now, array_fill(p_own.node, array[cardinality(p_own.seqs)]), p_own.seqs, p_own.tokens, p_own.results, p_own.more,
           array_fill(p_own.node, array[cardinality(p_own.lanes)]), p_own.lanes, p_own.limits, p_own."each", p_own."left", p_max,
           p_others, case when p_own.begun is not null then array_fill(p_own.node, array[cardinality(p_own.begun)]) end, p_own.begun, p_own.begun_tokens, p_own.begun_at,
           p_own.begun_waves, p_own.waves, p_own.progress, p_own.states, p_own.ahead) f;
  own.served_at := p_now;
end $$;

-- Does these requests in one step, and stores the results of all but the first, which is returned. has_events: the step has
-- appended events.
create function serve_together(
  p_now bigint, p_requests exchange_request[],
  out own exchange_request, out expired json, out settled boolean, out has_freed boolean, out freed_lanes text[],
  out has_events boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_request exchange_request;
  v_ends record;
  v_more json;
  v_progress json;
  v_begun record;
  v_claims record;
  v_done record;
  v_last_event bigint := (select last_value from event_seq);
begin
  foreach v_request in array p_requests loop
    if v_request.progress is not null then perform write_progress(p_now, v_request.node, v_request.progress); end if;
  end loop;
  select array_agg(r.node order by r.n, e.n) as nodes, array_agg(e.seq order by r.n, e.n) as seqs,
         array_agg(e.token order by r.n, e.n) as tokens, array_agg(e.result order by r.n, e.n) as results,
         array_agg(coalesce(e.wave, 0) order by r.n, e.n) as waves
    into v_ends
    from (select node, seqs, tokens, results, waves, row_number() over () as n from unnest(p_requests)) r
   cross join lateral unnest(r.seqs, r.tokens, r.results, r.waves) with ordinality e(seq, token, result, wave, n);
  v_more := (select json_agg(m) from unnest(p_requests) r cross join lateral json_array_elements(r.more) m where r.more is not null);
  v_progress := (
    select json_agg(m) from unnest(p_requests) r cross join lateral json_array_elements(r.progress) m
     where r.progress is not null and r.begun is not null);
  select array_agg(r.node order by r.n, b.n) as nodes, array_agg(b.seq order by r.n, b.n) as seqs,
         array_agg(b.token order by r.n, b.n) as tokens, array_agg(b.started_at order by r.n, b.n) as started_at,
         array_agg(b.wave order by r.n, b.n) as waves
    into v_begun
    from (select node, begun, begun_tokens, begun_at, begun_waves, row_number() over () as n from unnest(p_requests)) r
   cross join lateral unnest(r.begun, r.begun_tokens, r.begun_at, r.begun_waves) with ordinality b(seq, token, started_at, wave, n);
  select array_agg(r.node order by c.lane, c.state, r.n) as nodes, array_agg(c.lane order by c.lane, c.state, r.n) as lanes,
         array_agg(c.slots order by c.lane, c.state, r.n) as limits, array_agg(c."each" order by c.lane, c.state, r.n) as "each",
         array_agg(c."left" order by c.lane, c.state, r.n) as "left", array_agg(c.state order by c.lane, c.state, r.n) as states,
         array_agg(c.ahead order by c.lane, c.state, r.n) as ahead
    into v_claims
    from (select *, row_number() over () as n from unnest(p_requests)) r
   cross join lateral unnest(r.lanes, r.limits, r."each", r."left", r.states, r.ahead) c(lane, slots, "each", "left", state, ahead);
  select * into v_done
    from finish_and_claim(
           p_now, v_ends.nodes, v_ends.seqs, v_ends.tokens, v_ends.results, v_more, v_claims.nodes,
           coalesce(v_claims.lanes, '{}'), v_claims.limits, v_claims."each", v_claims."left", null, true, v_begun.nodes,
           v_begun.seqs, v_begun.tokens, v_begun.started_at, v_begun.waves, v_ends.waves, v_progress, v_claims.states, v_claims.ahead);
  expired := v_done.expired;
  settled := v_done.settled;
  has_freed := v_done.has_freed;
  freed_lanes := v_done.freed_lanes;
  -- Under the write lock, no other transaction appends any.
  has_events := (select last_value from event_seq) > v_last_event;
  for v_request in
    select * from unnest(p_requests)
  loop
    v_request.served_at := p_now;
    v_request.lost := array(select t.token from unnest(v_request.tokens) t(token) where t.token = any (v_done.lost));
    v_request.critical_waits := array(select lane from unnest(v_done.critical_waits) w(lane) where lane = any (v_request.lanes));
    select array_agg(s.seq order by s.token), array_agg(s.token order by s.token), array_agg(s.state order by s.token)
      into v_request.started_seqs, v_request.started_tokens, v_request.started_states
      from unnest(v_done.seqs, v_done.tokens, v_done.nodes, v_done.states) s(seq, token, node, state)
     where s.node = v_request.node;
    if own is null then
      own := v_request;
    else
      update exchange_request r
         set served_at = v_request.served_at, lost = v_request.lost, started_seqs = v_request.started_seqs,
             started_tokens = v_request.started_tokens, started_states = v_request.started_states,
             critical_waits = v_request.critical_waits, seqs = '{}', results = '{}', more = null, progress = null
       where r.node = v_request.node and r.number = v_request.number;
    end if;
  end loop;
end $$;

-- Ends attempts of a node and starts others. An exchange that finds another at work leaves a request and waits: the next one at
-- work does all requests in one step. So with more nodes steps become larger, and each task costs less.
-- p_number: of the node's own choice; p_again: the request with this number was sent before, and its response got lost.
create procedure exchange(
  p_now bigint, p_node text, p_number bigint, p_again boolean, p_seqs bigint[], p_tokens bigint[], p_results text[],
  p_more json, p_progress json, p_lanes text[], p_limits integer[], p_each integer[], p_left text[], p_max integer,
  p_others boolean, inout result json)
language plpgsql as $$
#variable_conflict use_column
declare
  v_at bigint;
  v_lost bigint[];
  v_seqs bigint[];
  v_tokens bigint[];
  v_expired json;
  v_settled boolean := false;
  v_freed boolean := false;
begin
  -- Nothing waits for the disk under the write lock. The caller flushes after the commit; readers wait (readDurably in database.ts).
  perform set_config('synchronous_commit', 'off', true);
  if p_again or not pg_try_advisory_xact_lock(:EXCHANGE_LOCK) then
    -- One that cannot share a step only waits.
    if p_max is null and pg_column_size(p_results) <= :REQUEST_BYTES_MAX then
      insert into exchange_request (node, number, functions, seqs, tokens, results, more, progress, lanes, limits, "each", "left")
      values (p_node, p_number, current_schema(), p_seqs, p_tokens, p_results, p_more, p_progress, p_lanes, p_limits, p_each, p_left)
      on conflict (node, number) do nothing;
    end if;
    commit;
    perform set_config('synchronous_commit', 'off', true);
    perform pg_advisory_xact_lock(:EXCHANGE_LOCK);
    delete from exchange_request where node = p_node and number = p_number
    returning served_at, lost, started_seqs, started_tokens into v_at, v_lost, v_seqs, v_tokens;
  end if;
  if v_at is null then
    v_at := take_write_lock(p_now);
    select lost, seqs, tokens, expired, settled, has_freed
      into v_lost, v_seqs, v_tokens, v_expired, v_settled, v_freed
      from serve_exchanges(v_at, p_node, p_seqs, p_tokens, p_results, p_more, p_progress, p_lanes, p_limits, p_each, p_left,
                           p_max, p_others);
  end if;
  commit;
  result := exchange_result(v_at, v_lost, v_seqs, v_tokens, v_expired, v_settled, v_freed);
end $$;

-- Does this exchange, and with it the exchanges of other nodes that wait for it.
create function serve_exchanges(
  p_now bigint, p_node text, p_seqs bigint[], p_tokens bigint[], p_results text[], p_more json, p_progress json,
  p_lanes text[], p_limits integer[], p_each integer[], p_left text[], p_max integer, p_others boolean,
  out lost bigint[], out seqs bigint[], out tokens bigint[], out expired json, out settled boolean, out has_freed boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_requests exchange_request[];
begin
  settled := false;
  has_freed := false;
  perform 1 from node where id = p_node and not dead;
  if not found then
    lost := p_tokens;
    return;
  end if;
  if p_max is null and exists (select 1 from exchange_request) then
    v_requests := array(
      select r from (
        select distinct on (r.node) r from exchange_request r join node n on n.id = r.node and not n.dead
         where r.served_at is null and not r.alone and r.functions = current_schema() and r.node <> p_node
         order by r.node, r.number) r
       limit :REQUESTS_MAX);
  end if;
  if cardinality(v_requests) > 0 then
    begin
      select t.lost, t.seqs, t.tokens, t.expired, t.settled, t.has_freed into lost, seqs, tokens, expired, settled, has_freed
        from serve_together(p_now, p_node, p_seqs, p_tokens, p_results, p_more, p_progress, p_lanes, p_limits, p_each, p_left,
                            v_requests) t;
      return;
    exception when others then
      -- One of them cannot be stored. Each is done alone then, and only that one fails.
      update exchange_request r set alone = true
        from unnest(v_requests) q where r.node = q.node and r.number = q.number;
    end;
  end if;
  if p_progress is not null then perform write_progress(p_now, p_node, p_progress); end if;
  select f.lost, f.seqs, f.tokens, f.expired, f.settled, f.has_freed into lost, seqs, tokens, expired, settled, has_freed
    from finish_and_claim(p_now, array_fill(p_node, array[cardinality(p_seqs)]), p_seqs, p_tokens, p_results, p_more,
                          array_fill(p_node, array[cardinality(p_lanes)]), p_lanes, p_limits, p_each, p_left, p_max, p_others) f;
end $$;

-- Does this exchange and these requests in one step, and stores the results of the requests.
create function serve_together(
  p_now bigint, p_node text, p_seqs bigint[], p_tokens bigint[], p_results text[], p_more json, p_progress json,
  p_lanes text[], p_limits integer[], p_each integer[], p_left text[], p_requests exchange_request[],
  out lost bigint[], out seqs bigint[], out tokens bigint[], out expired json, out settled boolean, out has_freed boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_end_nodes text[] := array_fill(p_node, array[cardinality(p_seqs)]);
  v_claim_nodes text[] := array_fill(p_node, array[cardinality(p_lanes)]);
  v_request exchange_request;
  v_done record;
begin
  if p_progress is not null then perform write_progress(p_now, p_node, p_progress); end if;
  foreach v_request in array p_requests loop
    if v_request.progress is not null then perform write_progress(p_now, v_request.node, v_request.progress); end if;
    v_end_nodes := v_end_nodes || array_fill(v_request.node, array[cardinality(v_request.seqs)]);
    p_seqs := p_seqs || v_request.seqs;
    p_tokens := p_tokens || v_request.tokens;
    p_results := p_results || v_request.results;
    if v_request.more is not null then
      p_more := (select json_agg(m) from (select json_array_elements(p_more) union all select json_array_elements(v_request.more)) u(m));
    end if;
    v_claim_nodes := v_claim_nodes || array_fill(v_request.node, array[cardinality(v_request.lanes)]);
    p_lanes := p_lanes || v_request.lanes;
    p_limits := p_limits || v_request.limits;
    p_each := p_each || v_request."each";
    p_left := p_left || v_request."left";
  end loop;
  select array_agg(c.node order by lane, n) as nodes, array_agg(lane order by lane, n) as lanes,
         array_agg(slots order by lane, n) as limits, array_agg(c."each" order by lane, n) as "each",
         array_agg(c."left" order by lane, n) as "left"
    into v_claim_nodes, p_lanes, p_limits, p_each, p_left
    from unnest(v_claim_nodes, p_lanes, p_limits, p_each, p_left) with ordinality c(node, lane, slots, "each", "left", n)
  having count(*) > 0;
  select * into v_done
    from finish_and_claim(p_now, v_end_nodes, p_seqs, p_tokens, p_results, p_more, coalesce(v_claim_nodes, '{}'),
                          coalesce(p_lanes, '{}'), p_limits, p_each, p_left, null, true);
  update exchange_request r
     set served_at = p_now, seqs = null, results = null, more = null, progress = null,
         lost = array(select t.token from unnest(r.tokens) t(token) where t.token = any (v_done.lost)),
         started_seqs = array(select s.seq from unnest(v_done.seqs, v_done.tokens, v_done.nodes) s(seq, token, node)
                               where s.node = r.node order by s.token),
         started_tokens = array(select s.token from unnest(v_done.tokens, v_done.nodes) s(token, node)
                                 where s.node = r.node order by s.token)
    from unnest(p_requests) q
   where r.node = q.node and r.number = q.number;
  lost := v_done.lost;
  seqs := array(select s.seq from unnest(v_done.seqs, v_done.tokens, v_done.nodes) s(seq, token, node)
                 where s.node = p_node order by s.token);
  tokens := array(select s.token from unnest(v_done.tokens, v_done.nodes) s(token, node) where s.node = p_node order by s.token);
  expired := v_done.expired;
  settled := v_done.settled;
  has_freed := v_done.has_freed;
end $$;

-- The lists of a key that sees one agent. They read no rows of other agents.

-- A session without an agent is one of the agent `index`.
create index session_by_agent on session (tenant, coalesce(agent, 'index'), id);
create index run_by_agent on run (tenant, agent, status, id);
create index run_by_schedule_agent on run (schedule, agent, status, id);
create index notification_by_agent on notification (tenant, agent, seq);

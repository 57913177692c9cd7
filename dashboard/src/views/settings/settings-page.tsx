import { useMemo } from "react";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { ChipText } from "../../parts/chip.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Empty, NoMatch } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { useFilters } from "../../parts/use-filters.ts";
import { useQuery } from "../../queries/use-query.ts";
import { Limits, NewWebhookSecret } from "../tenants/limits.tsx";
import { type Option, optionsOf } from "./options.ts";
import "./settings.css";

const FILTERS = { q: undefined } as const;

/** The limits of the own tenant, and for admins the configuration of the node, with secrets hidden. */
export default function SettingsPage() {
  const { may } = useSession();
  return (
    <Page title="Settings">
      <TenantSection />
      {may("administer") && <Configuration />}
    </Page>
  );
}

function TenantSection() {
  const { client, me } = useSession();
  const query = useQuery({
    queryKey: ["tenants", me.tenantId],
    queryFn: ({ signal }) => client.tenants.get(me.tenantId, { signal }),
  });
  return (
    <section className="cell" aria-labelledby="tenant-head">
      <div className="cell-head">
        <h2 id="tenant-head">Tenant {me.tenantName}</h2>
        <span className="grow" />
        <NewWebhookSecret tenantId={me.tenantId} />
      </div>
      <Read query={query} what="The tenant">
        {({ limits }) => (
          <dl className="props props-wide">
            <Limits limits={limits} />
          </dl>
        )}
      </Read>
    </section>
  );
}

function Configuration() {
  const { client, me } = useSession();
  const { filters, set, clear } = useFilters(FILTERS);
  const query = useQuery({
    queryKey: ["config", me.node],
    queryFn: ({ signal }) => client.config({ signal }),
  });
  return (
    <section className="rule" aria-labelledby="config-head">
      <div className="bar">
        <h2 id="config-head">Configuration</h2>
        <span className="muted hide-s">of node {me.node}</span>
        <span className="grow" />
        <ChipText label="Search" placeholder="option" value={filters.q} onChange={(q) => set({ q })} />
      </div>
      <Read query={query} what="The configuration">
        {(config) => <Options config={config} q={filters.q ?? ""} onClear={clear} />}
      </Read>
    </section>
  );
}

interface OptionsProps {
  readonly config: Readonly<Record<string, unknown>>;
  readonly q: string;
  readonly onClear: () => void;
}

function Options({ config, q, onClear }: OptionsProps) {
  const sections = useMemo(() => {
    const wanted = q.toLowerCase();
    return Object.entries(config)
      .map(([name, value]) => ({
        name,
        options: optionsOf(value).filter(({ path, text }) =>
          `${name}.${path} ${text}`.toLowerCase().includes(wanted),
        ),
      }))
      .filter(({ options }) => options.length > 0);
  }, [config, q]);
  if (Object.keys(config).length === 0) {
    return <Empty title="Nothing is configured">All options have their defaults.</Empty>;
  }
  if (sections.length === 0) return <NoMatch what="option" filters={1} onClear={onClear} />;
  return (
    <div className="config">
      {sections.map(({ name, options }) => (
        <section key={name} className="cell" aria-label={name}>
          <h3 className="mono">{name}</h3>
          <dl className="props props-wide">
            {options.map((option) => (
              <div key={option.path}>
                <dt className="mono">{option.path || name}</dt>
                <dd>
                  <Value option={option} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  );
}

function Value({ option: { text, isHidden } }: { readonly option: Option }) {
  if (!isHidden) return <span className="mono">{text}</span>;
  return (
    <span className="muted hidden-value">
      <Icon name="lock" size={12} />
      {text === "…" ? "hidden" : text}
    </span>
  );
}

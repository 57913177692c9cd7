import type { CSSProperties } from "react";
import type { DoctorCheck } from "../../../../src/client/index.ts";
import { Page } from "../../frame/page.tsx";
import { Button } from "../../parts/button.tsx";
import { countOf, formatCount } from "../../parts/format.ts";
import { Empty, Fault } from "../../parts/notices.tsx";
import { StateGlyph } from "../../parts/state.tsx";
import { Relative } from "../../parts/time.tsx";
import { useDoctor, useDoctorProgress } from "../../parts/use-doctor.ts";
import "./doctor.css";

/** Examines the installation: counters, schedules, statistics, the audit log, the clock and the configuration. */
export default function DoctorPage() {
  const { data, error, refetch, isFetching, at, failing } = useDoctor();
  const examine = (
    <Button icon="check" className="btn-main" disabled={isFetching} onClick={() => void refetch()}>
      <span>Examine</span>
    </Button>
  );
  return (
    <Page title="Doctor" actions={data !== undefined && examine}>
      {isFetching && <Progress />}
      {error !== null && !isFetching ? (
        <Fault error={error} what="The report" onRetry={() => void refetch()} />
      ) : data !== undefined ? (
        <>
          <p className="cell sub" role="status">
            {data.ok
              ? "Nothing is wrong"
              : `${countOf(data.checks.filter(({ ok }) => !ok).length, "check")} found something`}
            , examined <Relative at={new Date(data.at).toISOString()} />.
          </p>
          {data.checks.map((check) => (
            <Check key={check.name} check={check} />
          ))}
        </>
      ) : (
        !isFetching && (
          <Empty
            title={failing.length === 0 ? "Nothing was wrong" : `Something was wrong: ${failing.join(", ")}`}
            action={examine}
          >
            Last examined <Relative at={new Date(at).toISOString()} />.
          </Empty>
        )
      )}
    </Page>
  );
}

function Progress() {
  const { check, done, total } = useDoctorProgress() ?? { check: "", done: 0, total: null };
  return (
    <div className="bar" role="status">
      <span>
        Examining {check} {done > 0 && formatCount(done)}
        {total !== null && total > 0 && ` of about ${formatCount(total)}`}…
      </span>
      {total !== null && total > 0 && (
        <span className="bulk-meter" aria-hidden="true">
          <i style={{ "--p": `${Math.min(100, (done / total) * 100)}%` } as CSSProperties} />
        </span>
      )}
    </div>
  );
}

function Check({ check: { name, ok, summary, findings } }: { readonly check: DoctorCheck }) {
  return (
    <section className="cell rule check-cell" aria-label={name}>
      <StateGlyph state={ok ? "done" : "failed"} label={ok ? "Fine" : "Something is wrong"} />
      <div>
        <h2>{name}</h2>
        <p className="sub">{summary}</p>
        {findings.length > 0 && (
          <ul className="findings">
            {findings.map((finding) => (
              <li key={finding}>{finding}</li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}

import type { Permission } from "../api/permissions.ts";
import { useSession } from "../api/session.tsx";
import { Dialog } from "../parts/dialog.tsx";
import type { View } from "../views/view.ts";

const KEYS: readonly (readonly [string, string, string, Permission?])[] = [
  ["j", "k", "Next, previous"],
  ["Enter", "", "Open"],
  ["x", "", "Select", "operate"],
  ["c", "", "Cancel what is selected or shown", "submit"],
  ["r", "", "Retry what is selected or shown", "submit"],
  ["/", "", "Search"],
  ["n", "", "New entry on this page", "submit"],
  ["p", "", "Pause or resume live updates"],
  ["?", "", "This help"],
];

export function KeyHelp(props: {
  readonly items: readonly NonNullable<View["nav"]>[];
  readonly onClose: () => void;
}) {
  const { may } = useSession();
  const goes = props.items.flatMap(({ key, label }) => (key === undefined ? [] : [[key, label] as const]));
  return (
    <Dialog title="Keyboard shortcuts" onClose={props.onClose} size="small">
      <dl className="props key-help">
        <dt>
          <span className="kbd">Ctrl K</span>
        </dt>
        <dd>Search or jump to</dd>
        {KEYS.filter(([, , , needs]) => needs === undefined || may(needs)).map(([one, other, what]) => (
          <div key={one}>
            <dt>
              <span className="kbd">{one}</span> {other !== "" && <span className="kbd">{other}</span>}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
        {goes.map(([key, label]) => (
          <div key={key}>
            <dt>
              <span className="kbd">g</span> <span className="kbd">{key}</span>
            </dt>
            <dd>Go to {label.toLowerCase()}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

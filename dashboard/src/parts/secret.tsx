import { Button } from "./button.tsx";
import { useCopy } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon } from "./icon.tsx";

interface SecretProps {
  readonly title: string;
  /** What it is: "the key". */
  readonly what: string;
  readonly value: string;
  /** How to use it. */
  readonly hint: string;
  readonly onClose: () => void;
}

/** A secret that the server shows this once. */
export function Secret({ title, what, value, hint, onClose }: SecretProps) {
  const copy = useCopy();
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          <span className="grow" />
          <Button onClick={onClose}>I have stored it</Button>
          <Button icon="copy" className="btn-main" data-focus onClick={() => copy(value, what)}>
            Copy
          </Button>
        </>
      }
    >
      <div className="dialog-form">
        <div className="callout">
          <Icon name="alert" />
          <span>
            <b>It is shown this once</b>
            Store it now.
          </span>
        </div>
        <input
          className="input mono"
          readOnly
          aria-label={title}
          value={value}
          onFocus={(event) => event.target.select()}
        />
        <p className="sub">{hint}</p>
      </div>
    </Dialog>
  );
}

import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Button, IconButton } from "./button.tsx";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  /** Small for a question, wide for a form with a preview beside it. */
  readonly size?: "small" | "medium" | "wide";
  /** Below the content, at the right. */
  readonly footer?: ReactNode;
}

/** A modal dialog: the browser keeps the focus in it, closes it with Escape and restores the focus. */
export function Dialog({ title, onClose, children, size = "medium", footer }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    // The browser would focus the close button first.
    dialog?.querySelector<HTMLElement>("[data-focus]")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      className={`dialog dialog-${size}`}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <div className="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <IconButton icon="x" label="Close" onClick={onClose} />
      </div>
      <div className="dialog-scroll">{children}</div>
      {footer !== undefined && <div className="dialog-foot">{footer}</div>}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Names the object and the count: "Cancel 1 204 tasks". */
  readonly action: string;
  /** False: the dry run has not returned yet. */
  readonly isReady?: boolean;
  /** Whether nothing is lost by it. */
  readonly isSafe?: boolean;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Asks before an action that cannot be undone. */
export function Confirm({
  title,
  children,
  action,
  isReady = true,
  isSafe = false,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const formId = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isReady) return;
    onConfirm();
    onClose();
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      size="small"
      footer={
        <>
          <span className="grow" />
          <Button onClick={onClose}>{isSafe ? "Close" : "Keep"}</Button>
          <Button
            type="submit"
            form={formId}
            className={isSafe ? "btn-main" : "btn-bad-solid"}
            disabled={!isReady}
          >
            {action}
          </Button>
        </>
      }
    >
      <form id={formId} className="dialog-form" onSubmit={submit}>
        {children}
      </form>
    </Dialog>
  );
}

interface ConfirmByNameProps extends Omit<ConfirmProps, "isReady"> {
  /** The text that the user must type to confirm. */
  readonly name: string;
}

/** Asks the user to type the name of an object before an action on all of it. */
export function ConfirmByName({ name, children, ...confirm }: ConfirmByNameProps) {
  const [typed, setTyped] = useState("");
  const inputId = useId();
  return (
    <Confirm {...confirm} isReady={typed.trim() === name.trim()}>
      {children}
      <div className="field">
        <label htmlFor={inputId}>
          Type <b className="mono">{name}</b> to confirm
        </label>
        <input
          className="input"
          id={inputId}
          spellCheck={false}
          autoComplete="off"
          data-focus
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      </div>
    </Confirm>
  );
}

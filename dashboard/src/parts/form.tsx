import {
  type ComponentProps,
  createContext,
  type FormEvent,
  type KeyboardEvent,
  type ReactNode,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
} from "react";
import { sentenceOf } from "../api/errors.ts";
import { type FormFault, faultsOf } from "../forms/form-schema.ts";
import { useMutation } from "../queries/use-mutation.ts";
import { Button } from "./button.tsx";
import { Coded } from "./coded.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon } from "./icon.tsx";

interface FormDialogProps<Result> {
  readonly title: string;
  /** The button that submits: "Create key". */
  readonly action: string;
  readonly send: (fields: FormData) => Promise<Result>;
  readonly onDone: (result: Result) => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly size?: "small" | "medium" | "wide";
  /** Left out: true. False while its fields are read. */
  readonly isReady?: boolean;
  /** Above the form. */
  readonly above?: ReactNode;
  /** What becomes of the form, shown beside it. */
  readonly beside?: ReactNode;
  /** Left of the buttons. */
  readonly footer?: ReactNode;
}

/** What is wrong with the fields of the form, by their names. */
const FaultContext = createContext<ReadonlyMap<string, string>>(new Map());

/** A form. It stays open if the server refuses it, and says at each field what is wrong with it. */
export function FormDialog<Result>(props: FormDialogProps<Result>) {
  const { title, action, send, onDone, onClose, children, size = "small", above, beside, footer } = props;
  const { isReady = true } = props;
  const formId = useId();
  const form = useRef<HTMLFormElement>(null);
  const [faults, setFaults] = useState<ReadonlyMap<string, string>>(new Map());
  const { mutate, isPending, error } = useMutation({
    mutationFn: send,
    onError: (refusal) => {
      const placed = form.current === null ? new Map() : placeFaults(form.current, faultsOf(refusal));
      setFaults(placed);
      form.current && focusOn(form.current, [...placed.keys()][0]);
    },
    onSuccess: (result) => {
      onClose();
      onDone(result);
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setFaults(new Map());
    mutate(new FormData(event.currentTarget));
  };
  const press = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      size={size}
      footer={
        <>
          {footer}
          <span className="grow" />
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" form={formId} className="btn-main" disabled={isPending || !isReady}>
            {action}
          </Button>
        </>
      }
    >
      {above}
      <div className={beside === undefined ? undefined : "dialog-body"}>
        <form ref={form} id={formId} className="dialog-form" onSubmit={submit} onKeyDown={press}>
          <FaultContext value={faults}>{children}</FaultContext>
          {error !== null && faults.size === 0 && (
            <span className="err form-err" role="alert">
              <Icon name="alert" size={14} />
              <Coded text={sentenceOf(error)} />
            </span>
          )}
        </form>
        {beside !== undefined && (
          <div className="dialog-view" aria-live="polite">
            {beside}
          </div>
        )}
      </div>
    </Dialog>
  );
}

/** Each fault at the field that it is about, or at the one that contains that: `tasks[1].lane` at `tasks`. Empty: some have no field. */
function placeFaults(form: HTMLFormElement, faults: readonly FormFault[]): ReadonlyMap<string, string> {
  const placed = new Map<string, string>();
  for (const { field, message } of faults) {
    const names = [field, field.replace(/\.[^.]*$/, ""), field.replace(/[.[].*$/, "")];
    const name = names.find((each) => form.elements.namedItem(each) !== null);
    if (name === undefined) return new Map();
    placed.set(name, [placed.get(name), sentenceOf(message)].filter(Boolean).join(" "));
  }
  return placed;
}

/** Also if it is among folded ones. */
function focusOn(form: HTMLFormElement, name: string | undefined): void {
  const field = name === undefined ? null : form.elements.namedItem(name);
  if (!(field instanceof HTMLElement)) return;
  const folded = field.closest("details");
  if (folded !== null) folded.open = true;
  field.focus();
}

interface FieldProps extends Omit<ComponentProps<"input">, "onChange"> {
  readonly name: string;
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  /** What may be written, among others. */
  readonly suggestions?: readonly string[];
  /** It is a list of these: values, or pairs of value and word. */
  readonly options?: readonly (string | readonly [string, string])[];
  /** It is a text of so many lines. */
  readonly rows?: number;
  /** Whether the label says that it may be empty. */
  readonly isOptional?: boolean;
  /** Whether it has the focus at first. */
  readonly isFirst?: boolean;
  readonly onChange?: (value: string) => void;
}

/** A field with its label. */
export function Field(props: FieldProps) {
  const {
    label,
    hint,
    options,
    rows,
    suggestions = [],
    isOptional = false,
    isFirst = false,
    onChange,
    className = "",
    ...rest
  } = props;
  const id = useId();
  const fault = useContext(FaultContext).get(rest.name);
  // A form whose fields come later, when the dialog is open already.
  useEffect(() => {
    if (isFirst) document.getElementById(id)?.focus();
  }, [id, isFirst]);
  const shared = {
    ...(rest as object),
    id,
    className: `input ${className}`,
    "aria-describedby": [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ") || undefined,
    "aria-invalid": fault === undefined ? rest["aria-invalid"] : true,
    list: suggestions.length > 0 ? `${id}-list` : undefined,
    "data-focus": isFirst ? "" : undefined,
    ...(onChange && { onChange: (event: { target: { value: string } }) => onChange(event.target.value) }),
  };
  return (
    <div className="field">
      <label htmlFor={id}>
        {label} {isOptional && <span className="muted optional">optional</span>}
      </label>
      {options !== undefined ? (
        <span className="select">
          <select {...shared}>
            {options.map((option) => {
              const [value, word] = typeof option === "string" ? [option, option] : option;
              return (
                <option key={value} value={value}>
                  {word}
                </option>
              );
            })}
          </select>
          <Icon name="down" size={12} />
        </span>
      ) : rows !== undefined ? (
        <textarea rows={rows} spellCheck={false} {...shared} />
      ) : (
        <input autoComplete="off" spellCheck={false} {...shared} />
      )}
      {suggestions.length > 0 && (
        <datalist id={`${id}-list`}>
          {suggestions.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
      {fault !== undefined && (
        <span className="err" id={`${id}-fault`} role="alert">
          <Icon name="alert" size={14} />
          <Coded text={fault} />
        </span>
      )}
      {hint !== undefined && (
        <span className="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  );
}

/** The text of a field; undefined: empty. */
export function textOf(fields: FormData, name: string): string | undefined {
  return String(fields.get(name) ?? "").trim() || undefined;
}

/** The number of a field; null: empty. */
export function numberOf(fields: FormData, name: string): number | null {
  const text = textOf(fields, name);
  return text === undefined ? null : Number(text);
}

import { useMutation } from "@tanstack/react-query";
import { type ComponentProps, type FormEvent, type ReactNode, useId } from "react";
import { sentenceOf } from "../api/errors.ts";
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
  readonly size?: "small" | "medium";
  /** Above the form. */
  readonly above?: ReactNode;
}

/** A form. It stays open with a sentence if the server refuses it. */
export function FormDialog<Result>(props: FormDialogProps<Result>) {
  const { title, action, send, onDone, onClose, children, size = "small", above } = props;
  const formId = useId();
  const { mutate, isPending, error } = useMutation({
    mutationFn: send,
    onSuccess: (result) => {
      onClose();
      onDone(result);
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    mutate(new FormData(event.currentTarget));
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      size={size}
      footer={
        <>
          <span className="grow" />
          <button type="button" className="btn" onClick={onClose}>
            Close
          </button>
          <button type="submit" form={formId} className="btn btn-main" disabled={isPending}>
            {action}
          </button>
        </>
      }
    >
      {above}
      <form id={formId} className="dialog-form" onSubmit={submit}>
        {children}
        {error !== null && (
          <span className="err form-err" role="alert">
            <Icon name="alert" size={14} />
            {sentenceOf(error)}
          </span>
        )}
      </form>
    </Dialog>
  );
}

interface FieldProps extends Omit<ComponentProps<"input">, "onChange"> {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
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
    isOptional = false,
    isFirst = false,
    onChange,
    className = "",
    ...rest
  } = props;
  const id = useId();
  const shared = {
    ...(rest as object),
    id,
    className: `input ${className}`,
    "aria-describedby": hint && `${id}-hint`,
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

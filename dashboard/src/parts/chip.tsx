import { type ReactNode, useEffect, useState } from "react";
import { Icon } from "./icon.tsx";

interface ChipProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string) => void;
}

interface ChipSelectProps extends ChipProps {
  /** Values, or pairs of value and word. */
  readonly options: readonly (string | readonly [string, string])[];
  /** The choice without a value. */
  readonly none?: string;
}

/** A filter with some choices. */
export function ChipSelect({ label, value = "", onChange, options, none = "any" }: ChipSelectProps) {
  const pairs = options.map((option) => (typeof option === "string" ? ([option, option] as const) : option));
  const isKnown = value === "" || pairs.some(([each]) => each === value);
  return (
    <Chip label={label}>
      <select
        className="chip-select"
        aria-label={label}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      >
        <option value="">{none}</option>
        {!isKnown && <option>{value}</option>}
        {pairs.map(([each, word]) => (
          <option key={each} value={each}>
            {word}
          </option>
        ))}
      </select>
    </Chip>
  );
}

/** A filter by a text, which takes effect with Enter or when the field is left. */
export function ChipText({
  label,
  value = "",
  onChange,
  placeholder = "any",
}: ChipProps & { readonly placeholder?: string }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const commit = () => text.trim() !== value && onChange(text.trim());
  return (
    <Chip label={label}>
      <input
        className="chip-input"
        aria-label={label}
        placeholder={placeholder}
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={commit}
        onKeyDown={(event) => event.key === "Enter" && commit()}
      />
      {value !== "" && (
        <button
          type="button"
          className="x"
          aria-label={`Remove filter ${label}`}
          onClick={() => onChange("")}
        >
          <Icon name="x" size={12} />
        </button>
      )}
    </Chip>
  );
}

function Chip({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <span className="chip">
      <span className="k" aria-hidden="true">
        {label}
      </span>
      {children}
    </span>
  );
}

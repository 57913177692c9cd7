import type { ComponentProps } from "react";
import { Icon, type IconName } from "./icon.tsx";

interface ButtonProps extends ComponentProps<"button"> {
  /** Before the text. */
  readonly icon?: IconName | undefined;
}

/** A button with a text. `className` says which kind: `btn-main`, `btn-quiet`. */
export function Button({ icon, className = "", children, ...rest }: ButtonProps) {
  return (
    <button type="button" className={`btn ${className}`} {...rest}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ComponentProps<"button">, "children"> {
  readonly icon: IconName;
  /** What it does: for screen readers, and for the pointer that rests on it. */
  readonly label: string;
  readonly size?: 12;
}

/** A button that is an icon alone. */
export function IconButton({ icon, label, size, className = "", ...rest }: IconButtonProps) {
  return (
    <button type="button" className={`btn-icon ${className}`} aria-label={label} title={label} {...rest}>
      <Icon name={icon} size={size} />
    </button>
  );
}

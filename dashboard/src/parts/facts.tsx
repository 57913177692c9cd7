import type { ReactNode } from "react";

/** Names and values below a title, at the side of a page. */
export function Facts({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="cell">
      <div className="cell-head">
        <h2>{title}</h2>
      </div>
      <dl className="props">{children}</dl>
    </section>
  );
}

/** Renders nothing if the field is not set. */
export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  const parts = Array.isArray(children) ? children : [children];
  if (parts.every((part) => part === false || part === undefined)) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

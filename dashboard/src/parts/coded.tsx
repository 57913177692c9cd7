/** A sentence of the server, in which backticks mark code. */
export function Coded({ text }: { readonly text: string }) {
  return (
    <span>
      {text.split("`").map((part, index) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other name.
        index % 2 === 1 ? <code key={index}>{part}</code> : part,
      )}
    </span>
  );
}

import { IconButton } from "./button.tsx";
import { useToast } from "./toast.tsx";

/** Copies a text. A page over plain HTTP has no clipboard API, so there it copies a selection. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "vh";
    // While a dialog is open, only text inside it can be selected.
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    return copied;
  }
}

export function useCopy(): (text: string, what: string) => void {
  const toast = useToast();
  return (text, what) => {
    void copyText(text).then((copied) => toast(copied ? `Copied ${what}` : `Could not copy ${what}`));
  };
}

export function CopyButton({ text, what }: { readonly text: () => string; readonly what: string }) {
  const copy = useCopy();
  return (
    <IconButton icon="copy" className="more" label={`Copy ${what}`} onClick={() => copy(text(), what)} />
  );
}

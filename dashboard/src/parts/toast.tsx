import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { Button, IconButton } from "./button.tsx";

const SHOWN_MS = 5_000;

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly action?: { readonly label: string; readonly run: () => void };
}

type ShowToast = (text: string, action?: Toast["action"]) => void;

const ToastContext = createContext<ShowToast>(() => {});

/** Shows what was done, and offers to undo it. Not for changes that the page shows anyway. */
export function useToast(): ShowToast {
  return useContext(ToastContext);
}

let lastId = 0;

export function ToastProvider({ children }: { readonly children: ReactNode }) {
  const [toast, setToast] = useState<Toast>();
  useEffect(() => {
    if (toast === undefined) return;
    const timer = setTimeout(() => setToast(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [toast]);
  return (
    <ToastContext
      value={(text, action) => setToast({ id: ++lastId, text, ...(action === undefined ? {} : { action }) })}
    >
      {children}
      <div role="status" aria-live="polite">
        {toast !== undefined && (
          <div className="toast" key={toast.id}>
            <span>{toast.text}</span>
            <span className="btn-group">
              {toast.action !== undefined && (
                <Button
                  className="btn-quiet link"
                  onClick={() => {
                    toast.action?.run();
                    setToast(undefined);
                  }}
                >
                  {toast.action.label}
                </Button>
              )}
              <IconButton icon="x" label="Dismiss" onClick={() => setToast(undefined)} />
            </span>
          </div>
        )}
      </div>
    </ToastContext>
  );
}

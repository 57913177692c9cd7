import { type FormEvent, useEffect, useRef, useState } from "react";
import { switchTheme } from "../frame/theme.ts";
import { Button } from "../parts/button.tsx";
import { Icon, Mark } from "../parts/icon.tsx";

interface SignInProps {
  /** Why the last key was refused, or the session ended. */
  readonly fault: string | undefined;
  readonly onKey: (key: string, remember: boolean) => Promise<void>;
}

export function SignIn({ fault, onKey }: SignInProps) {
  const [isBusy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · Rota";
    input.current?.focus();
  }, []);

  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const key = String(fields.get("key") ?? "").trim();
    if (key === "") return input.current?.focus();
    setBusy(true);
    await onKey(key, fields.get("remember") === "on");
    setBusy(false);
    input.current?.select();
  };

  return (
    <div className="login">
      <main className="login-in">
        <Mark />
        <div>
          <h1>Sign in to Rota</h1>
          <p className="sub login-lead">Paste an API key of your tenant.</p>
        </div>
        <form onSubmit={submit}>
          <div className="field">
            <label htmlFor="key">API key</label>
            <input
              ref={input}
              className="input input-lg mono"
              id="key"
              name="key"
              type="password"
              autoComplete="current-password"
              placeholder="rota_…"
              aria-invalid={fault !== undefined}
              aria-describedby={fault === undefined ? undefined : "key-fault"}
            />
            {fault !== undefined && (
              <span className="err" id="key-fault" role="alert">
                <Icon name="alert" size={14} />
                {fault}
              </span>
            )}
          </div>
          <label className="check-row">
            <input type="checkbox" className="check" name="remember" />
            Remember on this device
          </label>
          <Button className="btn-main btn-lg" type="submit" disabled={isBusy}>
            Sign in
          </Button>
        </form>
        <details className="more">
          <summary>
            <Icon name="right" size={12} />I have no key
          </summary>
          <p className="sub login-hint">
            Ask an admin for a key. Lost every key? Stop Rota and run{" "}
            <span className="mono">rota keys create --role admin --name me --storage …</span>
          </p>
        </details>
      </main>
      <footer>
        <span>{location.host}</span>
        <button type="button" className="link" onClick={switchTheme}>
          Switch theme
        </button>
      </footer>
    </div>
  );
}

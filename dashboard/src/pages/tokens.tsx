/** Signing in with a token, creating one, and showing it once. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { messageOf } from '../io/client.ts';
import { LIMIT_LABELS, SCOPE_MEANINGS, T } from '../texts.ts';
import type { CreatedToken, Scope } from '../types.ts';
import { DialogFooter, Modal } from '../parts/modal.tsx';

const SCOPES: readonly Scope[] = ['v1-only', 'read-only', 'all', 'admin'];

interface CreateTokenProps {
  readonly onClose: () => void;
  readonly onCreated: (token: CreatedToken) => void;
}

export function CreateToken({ onClose, onCreated }: CreateTokenProps): JSX.Element {
  const { client } = useApp();
  const [label, setLabel] = useState('');
  const [scope, setScope] = useState<Scope>('v1-only');
  /** As of the input: a local day, or nothing. */
  const [lastDay, setLastDay] = useState('');
  /** As written, by key. */
  const [limits, setLimits] = useState<Readonly<Record<string, string>>>({});
  const [failure, setFailure] = useState('');
  const create = (event: Event): void => {
    event.preventDefault();
    client
      .fetchJson<CreatedToken>('/api/auth/tokens', { method: 'POST', body: { label, scope, ...endOf(lastDay), ...limitsOf(limits) } })
      .then(onCreated, (error: unknown) => setFailure(messageOf(error)));
  };
  return (
    <Modal kind="dialog" title={T.createToken} onClose={onClose}>
      <form onSubmit={create}>
        <label>
          {T.label}
          <input required value={label} autocomplete="off" onInput={(event) => setLabel(event.currentTarget.value)} />
        </label>
        <fieldset>
          <legend>{T.scope}</legend>
          {SCOPES.map((name) => (
            <label key={name} class="check">
              <input type="radio" name="scope" checked={name === scope} onChange={() => setScope(name)} />
              <span>
                <strong>{name}</strong> {SCOPE_MEANINGS[name]}
              </span>
            </label>
          ))}
        </fieldset>
        <label>
          {T.lastDay}
          <input type="date" value={lastDay} onInput={(event) => setLastDay(event.currentTarget.value)} />
        </label>
        <LimitFields limits={limits} onChange={setLimits} />
        {failure !== '' && <p role="alert">{failure}</p>}
        <DialogFooter onClose={onClose} action={T.createToken} />
      </form>
    </Modal>
  );
}

interface LimitFieldsProps {
  readonly limits: Readonly<Record<string, string>>;
  readonly onChange: (limits: Readonly<Record<string, string>>) => void;
}

function LimitFields({ limits, onChange }: LimitFieldsProps): JSX.Element {
  return (
    <details>
      <summary>{T.limitsOptional}</summary>
      {Object.entries(LIMIT_LABELS).map(([key, label]) => (
        <label key={key}>
          {label}
          <input
            inputMode={TEXTS.has(key) ? 'text' : 'numeric'}
            value={limits[key] ?? ''}
            autocomplete="off"
            onInput={(event) => onChange({ ...limits, [key]: event.currentTarget.value })}
          />
        </label>
      ))}
    </details>
  );
}

const MODELS = 'models';
const TEXTS: ReadonlySet<string> = new Set([MODELS, 'priority']);

/** Fields that are empty limit nothing. */
const limitsOf = (written: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(written)
      .filter(([, text]) => text.trim() !== '')
      .map(([key, text]) => [key, valueOf(key, text.trim())]),
  );

function valueOf(key: string, text: string): unknown {
  if (key === MODELS) return text.split(',').map((name) => name.trim());
  return TEXTS.has(key) ? text : Number(text);
}

/** The end of a local day. */
const endOf = (day: string): { readonly expires_at?: string } =>
  day === '' ? {} : { expires_at: new Date(`${day}T23:59:59.999`).toISOString() };

/** Neither Escape nor a click on the backdrop closes this dialog: the token would be lost. */
export function NewToken({ token, onClose }: { readonly token: CreatedToken; readonly onClose: () => void }): JSX.Element {
  const [copied, setCopied] = useState(false);
  const canCopy = window.isSecureContext && 'clipboard' in navigator;
  const copy = (): void => void navigator.clipboard.writeText(token.token).then(() => setCopied(true));
  return (
    <Modal kind="dialog" title={T.tokenOnce}>
      <p>{T.tokenOnceWhy}</p>
      <label>
        {token.label}
        <input class="secret" readOnly value={token.token} onFocus={(event) => event.currentTarget.select()} />
      </label>
      {!canCopy && <p>{T.noClipboard}</p>}
      <footer>
        {canCopy && (
          <button type="button" onClick={copy}>
            {copied ? T.copied : T.copy}
          </button>
        )}
        <button type="button" class="main" onClick={onClose}>
          {T.done}
        </button>
      </footer>
    </Modal>
  );
}

/** Shown if authentication is on and no proxy has signed the user in. */
export function SignIn(): JSX.Element {
  const { client, store, needsToken } = useApp();
  const [token, setToken] = useState('');
  const use = (event: Event): void => {
    event.preventDefault();
    client.setToken(token);
    needsToken.value = false;
    store.retryNow();
  };
  return (
    <form class="panel narrow" onSubmit={use}>
      <h1>{T.signInTitle}</h1>
      <p>{T.signInWhy}</p>
      <label>
        {T.token}
        <input type="password" autocomplete="off" value={token} onInput={(event) => setToken(event.currentTarget.value)} />
      </label>
      <button type="submit" class="main">
        {T.signIn}
      </button>
    </form>
  );
}

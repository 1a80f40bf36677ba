/** The Settings page: authentication, tokens, the source of the configuration, and the version of the service. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { formatTime } from '../decide/format.ts';
import { DataTable } from '../parts/data-table.tsx';
import { SourcePanel } from './source.tsx';
import { CreateToken, NewToken } from './tokens.tsx';
import { FactList, type NamedFact } from '../parts/fact-list.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { ThemeField } from '../parts/theme-field.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { LIMIT_LABELS, PAGE_NAMES, T } from '../texts.ts';
import type { AuthStatus, CreatedToken, TokenEntry, TokenLimits } from '../types.ts';

export function SettingsPage(): JSX.Element {
  const { client } = useApp();
  const mayEdit = useMay()('admin');
  const [round, setRound] = useState(0);
  const [creating, setCreating] = useState(false);
  const [created, setCreated] = useState<CreatedToken>();
  const [revoking, setRevoking] = useState<TokenEntry>();
  const auth = useLoaded((signal) => client.fetchJson<AuthStatus>('/api/auth/status', { signal }), []);
  const tokens = useLoaded(
    async (signal) =>
      mayEdit ? await client.fetchJson<{ readonly tokens: readonly TokenEntry[] }>('/api/auth/tokens', { signal }) : undefined,
    [round, mayEdit],
  );
  const reload = (): void => setRound(round + 1);
  return (
    <>
      <div class="page-head">
        <h1>{PAGE_NAMES.settings}</h1>
        <ThemeField />
      </div>
      <section class="panel">
        <h2>{T.authentication}</h2>
        {auth.kind === 'done' && <p>{auth.value.auth_enabled ? T.authOn : T.authOff}</p>}
        <div class="row">
          <h3>{T.tokens}</h3>
          {mayEdit ? <CreateButton onClick={() => setCreating(true)} /> : <p class="why">{T.mayNot}</p>}
        </div>
        {tokens.kind === 'failed' && <p role="alert">{tokens.message}</p>}
        {tokens.kind === 'done' && tokens.value !== undefined && <TokenTable tokens={tokens.value.tokens} onRevoke={setRevoking} />}
      </section>
      <SourcePanel />
      <ServiceFacts />
      {creating && (
        <CreateToken
          onClose={() => setCreating(false)}
          onCreated={(token) => {
            setCreating(false);
            setCreated(token);
            reload();
          }}
        />
      )}
      {created !== undefined && <NewToken token={created} onClose={() => setCreated(undefined)} />}
      {revoking !== undefined && (
        <ConfirmDialog
          title={`${T.revokeTitle} "${revoking.label}"`}
          text={T.revokeWhy}
          action={T.revoke}
          path={`/api/auth/tokens/${encodeURIComponent(revoking.id)}`}
          onClose={() => setRevoking(undefined)}
          onDone={() => {
            setRevoking(undefined);
            reload();
          }}
        />
      )}
    </>
  );
}

const CreateButton = ({ onClick }: { readonly onClick: () => void }): JSX.Element => (
  <button type="button" class="main" onClick={onClick}>
    {T.createToken}
  </button>
);

function ServiceFacts(): JSX.Element | null {
  const { store } = useApp();
  const status = store.status.value;
  if (status === undefined) return null;
  const facts: readonly NamedFact[] = [
    [T.version, status.version],
    [T.runtime, status.runtime],
  ];
  return (
    <section class="panel">
      <h2>{T.service}</h2>
      <FactList facts={facts} />
    </section>
  );
}

interface TokenTableProps {
  readonly tokens: readonly TokenEntry[];
  readonly onRevoke: (token: TokenEntry) => void;
}

function TokenTable({ tokens, onRevoke }: TokenTableProps): JSX.Element {
  const { now } = useApp();
  if (tokens.length === 0) return <p>{T.noTokens}</p>;
  return (
    <DataTable label={T.tokens} titles={[T.label, T.scope, T.created, T.expires, T.limits, T.lastUsed, T.actions]}>
      {tokens.map((token) => (
        <tr key={token.id}>
          <td>
            {token.label} <small>{token.id}</small>
          </td>
          <td>
            <span class="tag">{token.scope}</span>
          </td>
          <td>{formatTime(token.created_at, now.peek())}</td>
          <td>{token.expires_at === null ? T.never : formatTime(token.expires_at, now.peek())}</td>
          <td>{describeLimits(token.limits)}</td>
          <td>{token.last_used_at === null ? T.never : formatTime(token.last_used_at, now.peek())}</td>
          <td>
            <button type="button" aria-label={`${T.revoke} ${token.label}`} onClick={() => onRevoke(token)}>
              {T.revoke}
            </button>
          </td>
        </tr>
      ))}
    </DataTable>
  );
}

function describeLimits(limits: TokenLimits): string {
  const parts = Object.entries(limits).map(
    ([key, value]) => `${LIMIT_LABELS[key] ?? key}: ${Array.isArray(value) ? value.join(', ') : String(value)}`,
  );
  return parts.length === 0 ? T.none : parts.join('; ');
}

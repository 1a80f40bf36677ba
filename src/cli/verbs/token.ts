/**
 * `svcctl token create|list|revoke`. Without a server in the options or the environment, it works on the file of this machine, whether the service runs or not; the service
 * sees the change with its next request. For a cluster it does the same on the Secret, with the rights of the kubeconfig, unless a token is given: then it asks the service.
 */
import path from 'node:path';
import { createTokenManager, type TokenManager } from '../../auth/manage-tokens.ts';
import { TokenLabel, TOKEN_ID } from '../../auth/decide/token-file-text.ts';
import { createTokenStore } from '../../auth/token-store.ts';
import { readTokenUse } from '../../auth/token-use.ts';
import { SCOPES, type Scope } from '../../schema/words/access.ts';
import type { Cli } from '../cli.ts';
import { anything, each, fields, maybe, oneOf, text, type Read } from '../connect/answer-shape.ts';
import { givenToken, targetsCluster, type ServiceOptions } from '../connect/service-options.ts';
import type { TokenSecretOptions } from '../connect/open-token-secret.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { cellText, dataText, listText, type Column, type Output } from '../output/output.ts';

export interface CreateOptions extends TokenSecretOptions {
  readonly label: string;
  readonly scope: Scope;
  readonly output: Output;
}

/** The same defaults as in `settings.ts`, whose other settings need not be valid here. */
const CONFIG_DIR = '/etc/svc';
const STATE_DIR = '/var/lib/svc';

const CreatedAnswer = fields({
  id: text,
  label: text,
  scope: oneOf(SCOPES),
  created_at: text,
  token: text,
});
const TokensAnswer = fields({
  tokens: each(fields({ id: text, label: text, scope: text, created_at: text, last_used_at: maybe(text) })),
});

export async function runTokenCreate(cli: Cli, options: CreateOptions): Promise<void> {
  const created = (await asksService(options, cli.env))
    ? await (
        await cli.connect(options)
      ).request('POST', '/api/auth/tokens', CreatedAnswer, {
        body: { label: options.label, scope: options.scope },
      })
    : await createItself(cli, options);
  const data = await dataText(options.output, created);
  if (data !== undefined) {
    await cli.terminal.write(data);
    return;
  }
  cli.terminal.note(`Store this token now: it is shown once and cannot be retrieved later (id ${created.id}, scope "${created.scope}")`);
  cli.terminal.line(created.token);
}

export async function runTokenList(cli: Cli, options: TokenSecretOptions & { readonly output: Output }): Promise<void> {
  const items = (await asksService(options, cli.env))
    ? (await (await cli.connect(options)).request('GET', '/api/auth/tokens', TokensAnswer)).tokens
    : await listItself(cli, options);
  await cli.terminal.write(
    await listText(cli.terminal, options.output, { key: 'tokens', items, columns: COLUMNS, nameOf: ({ id }) => id }),
  );
  if (items.length === 0 && options.output === 'table') {
    cli.terminal.note('There are no tokens; create one with "svcctl token create --label NAME"');
  }
}

export async function runTokenRevoke(cli: Cli, options: TokenSecretOptions, ...ids: string[]): Promise<void> {
  const client = (await asksService(options, cli.env)) ? await cli.connect(options) : undefined;
  for (const id of ids) {
    if (!TOKEN_ID.test(id))
      throw usageFailure(`Write the id of a token, such as "1a2b3c4d", not "${id}"`, 'List them with "svcctl token list"');
    if (client === undefined) await revokeItself(cli, options, id);
    else await client.request('DELETE', `/api/auth/tokens/${id}`, anything);
    cli.terminal.line(`token/${id} revoked`);
  }
}

type Listed = Read<typeof TokensAnswer>['tokens'][number];

const COLUMNS: readonly Column<Listed>[] = [
  { title: 'ID', cell: ({ id }) => cellText(id) },
  { title: 'SCOPE', cell: ({ scope }) => cellText(scope) },
  { title: 'CREATED', cell: ({ created_at: at }) => cellText(at) },
  { title: 'LAST USED', cell: ({ last_used_at: at }) => cellText(at) },
  { title: 'LABEL', cell: ({ label }) => cellText(label) },
];

async function asksService(options: ServiceOptions, env: Cli['env']): Promise<boolean> {
  if (targetsCluster(options, env)) return (await givenToken(options, env)) !== undefined;
  return options.server !== undefined || (env['SVCCTL_SERVER'] ?? '') !== '';
}

interface Opened {
  readonly tokens: TokenManager;
  /** What to do if it fails. */
  readonly hint: string;
}

async function open(cli: Cli, options: TokenSecretOptions): Promise<Opened> {
  if (targetsCluster(options, cli.env)) {
    const { openTokenSecret, SECRET_HINT } = await import('../connect/open-token-secret.ts');
    return { tokens: await openTokenSecret(options, cli), hint: SECRET_HINT };
  }
  const { env, now, terminal } = cli;
  const log = { warn: (_fields: unknown, message: string) => void terminal.note(message) };
  const store = createTokenStore({ path: path.join(path.resolve(env['SVC_CONFIG_DIR'] ?? CONFIG_DIR), 'tokens.toml'), log });
  const uses = await readTokenUse(path.join(path.resolve(env['SVC_STATE_DIR'] ?? STATE_DIR), 'token-use.json'));
  return { tokens: createTokenManager({ store, lastUses: () => uses, wallNow: now }), hint: HERE };
}

async function createItself(cli: Cli, options: CreateOptions): Promise<Read<typeof CreatedAnswer>> {
  const wanted = TokenLabel.safeParse(options.label);
  if (!wanted.success) throw usageFailure(wanted.error.issues[0]?.message ?? 'Write a name for the token');
  const { tokens, hint } = await open(cli, options);
  const created = await tokens.create({ label: wanted.data, scope: options.scope });
  if (!created.ok) throw new CliFailure(created.message, { hint });
  const { createdAt, ...rest } = created.value;
  return { ...rest, created_at: createdAt };
}

async function listItself(cli: Cli, options: TokenSecretOptions): Promise<readonly Listed[]> {
  const { tokens } = await open(cli, options);
  return tokens.list().map(({ createdAt, lastUsedAt, ...rest }) => ({
    ...rest,
    created_at: createdAt,
    last_used_at: lastUsedAt === undefined ? null : new Date(lastUsedAt).toISOString(),
  }));
}

async function revokeItself(cli: Cli, options: TokenSecretOptions, id: string): Promise<void> {
  const { tokens, hint } = await open(cli, options);
  const revoked = await tokens.revoke(id);
  if (!revoked.ok) throw new CliFailure(revoked.message, { hint });
  if (!revoked.value) throw new CliFailure(`There is no token "${id}"`, { hint: 'List them with "svcctl token list"' });
}

/** For users who mean the tokens of another machine. */
const HERE = 'Run it as the user of the service, or name a running service with --server';

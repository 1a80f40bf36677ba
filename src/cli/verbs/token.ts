/**
 * `svcctl token create|edit|list|revoke`. These verbs change the token file of this machine, with or without a running
 * service, unless the options or the environment name a server. They change the Secret of a cluster with the rights of
 * the kubeconfig, unless a token is given: then they send requests to the service.
 */
import path from 'node:path';
import type { z } from 'zod';
import { TokenLabel, TOKEN_ID } from '../../auth/decide/token-file-text.ts';
import { createTokenManager, type TokenManager } from '../../auth/manage-tokens.ts';
import { TokenLimitEdits, viewToken } from '../../api/manage/token-routes.ts';
import type { SharedText, SharedTokenText } from '../../auth/shared-token-store.ts';
import { createSharedTokenStore } from '../../auth/shared-token-store.ts';
import { createTokenStore, readTokenUse } from '../../auth/token-store.ts';
import type { Scope } from '../../schema/words/access.ts';
import { limitsOf } from '../../schema/words/caller-limits.ts';
import { isDuration, parseDurationMs } from '../../schema/words/quantities.ts';
import type { Answer } from '../connect/api-answers.ts';
import { givenToken, targetsCluster, type ServiceOptions } from '../connect/service-options.ts';
import { configDirOf, readVersion, stateDirOf } from '../installation.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { cellText, dataText, listText, type Column, type OutputOptions } from '../output/output.ts';
import type { Cli } from '../verb.ts';

export interface TokenSecretOptions extends ServiceOptions {
  readonly secret?: string | undefined;
}

/** As written. Absent: unchanged, or no limit. */
type LimitOptions = Readonly<Partial<Record<(typeof LIMIT_OPTIONS)[number], string>>>;
const LIMIT_OPTIONS = [
  'models',
  'requestsPerMinute',
  'tokensPerMinute',
  'tokensPerDay',
  'maxInFlight',
  'maxOutputTokens',
  'weight',
  'priority',
] as const;

export interface CreateOptions extends TokenSecretOptions, OutputOptions, LimitOptions {
  readonly label: string;
  readonly scope: Scope;
  readonly expires?: string;
}

interface EditOptions extends TokenSecretOptions, OutputOptions, LimitOptions {
  readonly label?: string;
  readonly expires?: string;
}

const READ_TIMEOUT_MS = 15_000;
/** The last instant that four digits of a year can name. */
const FAR = Date.UTC(10_000, 0);
const SECRET_HINT =
  'Get the rights to "get" and "patch" the Secret (--secret), or set SVCCTL_TOKEN to an admin token to use the service instead';
/** Users may mean the tokens of another machine. */
const HERE = 'Run this as the user of the service, or name a running service with --server';

export async function runTokenCreate(cli: Cli, options: CreateOptions): Promise<void> {
  const end = options.expires === undefined ? undefined : endOf(options.expires, cli.now());
  const limits = checkedLimits(limitsIn(options));
  const body = { label: options.label, scope: options.scope, ...(end === undefined ? {} : { expires_at: end }), ...limits };
  const isAsked = await asksService(options, cli.env);
  const created = isAsked
    ? await (await cli.connect(options)).request('POST', '/api/auth/tokens', 'createdToken', { body })
    : await createItself(cli, options, { expiresAt: end, limits });
  const data = await dataText(options.output, created);
  if (data !== undefined) return cli.terminal.write(data);
  const place = isAsked || targetsCluster(options, cli.env) ? '' : `, in ${tokenFileOf(cli.env)}`;
  const facts = `id ${created.id}, scope "${created.scope}"${place}`;
  cli.terminal.note(`Store this token now: it is shown once and cannot be retrieved later (${facts})`);
  cli.terminal.line(created.token);
}

export async function runTokenEdit(cli: Cli, options: EditOptions, id: string): Promise<void> {
  if (!TOKEN_ID.test(id)) throw wrongId(id);
  const end = options.expires === undefined ? {} : { expires_at: options.expires === 'never' ? null : endOf(options.expires, cli.now()) };
  const named = options.label === undefined ? {} : { label: checkedLabel(options.label) };
  const body = { ...named, ...end, ...checkedLimits(limitsIn(options)) };
  if (Object.keys(body).length === 0)
    throw usageFailure('Nothing to change', 'Name what to change, such as --requests-per-minute 60, or --models none');
  const edited = (await asksService(options, cli.env))
    ? await (await cli.connect(options)).request('PATCH', `/api/auth/tokens/${id}`, 'token', { body })
    : await editItself(cli, options, { id, body });
  const data = await dataText(options.output, edited);
  if (data !== undefined) return cli.terminal.write(data);
  cli.terminal.line(`token/${id} changed: ${describeLimits(edited)}`);
}

export async function runTokenList(cli: Cli, options: TokenSecretOptions & OutputOptions): Promise<void> {
  const items = (await asksService(options, cli.env))
    ? (await (await cli.connect(options)).request('GET', '/api/auth/tokens', 'tokens')).tokens
    : (await open(cli, options)).tokens.list().map(viewToken);
  await cli.terminal.write(
    await listText(cli.terminal, options.output, { key: 'tokens', items, columns: COLUMNS, nameOf: ({ id }) => id }),
  );
  if (items.length === 0 && options.output === 'table')
    cli.terminal.note('No tokens found; create one with "svcctl token create --label NAME"');
}

export async function runTokenRevoke(cli: Cli, options: TokenSecretOptions, ...ids: string[]): Promise<void> {
  const client = (await asksService(options, cli.env)) ? await cli.connect(options) : undefined;
  for (const id of ids) {
    if (!TOKEN_ID.test(id)) throw wrongId(id);
    if (client === undefined) await revokeItself(cli, options, id);
    else await client.request('DELETE', `/api/auth/tokens/${id}`, 'anything');
    cli.terminal.line(`token/${id} revoked`);
  }
}

const wrongId = (id: string): CliFailure =>
  usageFailure(`Invalid token id "${id}": use 8 hexadecimal digits`, 'List the tokens with "svcctl token list"');

type LimitEdits = z.output<typeof TokenLimitEdits>;

/** Keys as in the file. "none" is null. */
function limitsIn(options: LimitOptions): Readonly<Record<string, unknown>> {
  const entries = LIMIT_OPTIONS.flatMap((key): readonly (readonly [string, unknown])[] => {
    const text = options[key];
    if (text === undefined) return [];
    const name = key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (text === 'none') return [[name, null]];
    if (key === 'priority') return [[name, text]];
    return [[name, key === 'models' ? text.split(',').map((each) => each.trim()) : Number(text)]];
  });
  return Object.fromEntries(entries);
}

function checkedLimits(limits: Readonly<Record<string, unknown>>): LimitEdits {
  const checked = TokenLimitEdits.safeParse(limits);
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  const flag = `--${String(issue?.path[0] ?? 'limit').replaceAll('_', '-')}`;
  throw usageFailure(
    `Invalid value of ${flag}: ${issue?.message ?? 'it is wrong'}`,
    'Write a whole number from 1, names for --models, or "none"',
  );
}

function describeLimits({ expires_at: end, limits }: Listed): string {
  const parts = Object.entries(limits).map(([key, value]) => `${key} = ${Array.isArray(value) ? value.join(', ') : String(value)}`);
  return [end === null ? 'it never expires' : `it expires at ${end}`, ...(parts.length === 0 ? ['no limits'] : parts)].join('; ');
}

type Listed = Answer<'tokens'>['tokens'][number];

const COLUMNS: readonly Column<Listed>[] = [
  { title: 'ID', cell: ({ id }) => cellText(id) },
  { title: 'SCOPE', cell: ({ scope }) => cellText(scope) },
  { title: 'CREATED', cell: ({ created_at: at }) => cellText(at) },
  { title: 'EXPIRES', cell: ({ expires_at: at }) => (at === null ? 'never' : cellText(at)) },
  { title: 'LAST USED', cell: ({ last_used_at: at }) => cellText(at) },
  {
    title: 'LIMITS',
    cell: ({ limits }) =>
      cellText(
        Object.entries(limits)
          .map(([key, value]) => `${key}=${String(value)}`)
          .join(' ') || 'none',
      ),
  },
  { title: 'LABEL', cell: ({ label }) => cellText(label) },
];

async function asksService(options: ServiceOptions, env: Cli['env']): Promise<boolean> {
  if (targetsCluster(options, env)) return (await givenToken(options, env)) !== undefined;
  return options.server !== undefined || (env['SVCCTL_SERVER'] ?? '') !== '';
}

const tokenFileOf = (env: Cli['env']): string => path.join(configDirOf(env), 'tokens.toml');

/** `hint`: of failures. */
async function open(cli: Cli, options: TokenSecretOptions): Promise<{ readonly tokens: TokenManager; readonly hint: string }> {
  const { env, now, terminal } = cli;
  const log = { warn: (_fields: unknown, message: string) => void terminal.note(message) };
  if (targetsCluster(options, env)) {
    const store = createSharedTokenStore({ shared: await openSecret(options, cli), log });
    return { tokens: createTokenManager({ store, lastUses: () => new Map(), wallNow: now }), hint: SECRET_HINT };
  }
  const store = createTokenStore({ path: tokenFileOf(env), log });
  const uses = await readTokenUse(path.join(stateDirOf(env), 'token-use.json'));
  return { tokens: createTokenManager({ store, lastUses: () => uses, wallNow: now }), hint: HERE };
}

/** A duration from now, or a date. */
function endOf(text: string, now: number): string {
  const end = isDuration(text) ? now + parseDurationMs(text) : Date.parse(text);
  if (end > now && end < FAR) return new Date(end).toISOString();
  throw usageFailure(`Invalid end "${text}"`, 'Write a duration such as "30d", or a time in the future such as "2027-01-31T12:00:00Z"');
}

function checkedLabel(label: string): string {
  const wanted = TokenLabel.safeParse(label);
  if (wanted.success) return wanted.data;
  throw usageFailure(wanted.error.issues[0]?.message ?? 'Invalid token label');
}

interface CreatedWith {
  readonly expiresAt: string | undefined;
  readonly limits: LimitEdits;
}

async function createItself(cli: Cli, options: CreateOptions, { expiresAt, limits }: CreatedWith): Promise<Answer<'createdToken'>> {
  const label = checkedLabel(options.label);
  const { tokens, hint } = await open(cli, options);
  const created = await tokens.create({ label, scope: options.scope, expiresAt, limits: limitsOf(limits) });
  if (!created.ok) throw new CliFailure(created.message, { hint });
  const { createdAt, expiresAt: expires = null, ...rest } = created.value;
  return { ...rest, created_at: createdAt, expires_at: expires };
}

interface TokenEdit {
  readonly id: string;
  readonly body: LimitEdits & { readonly label?: string; readonly expires_at?: string | null };
}

async function editItself(cli: Cli, options: TokenSecretOptions, { id, body }: TokenEdit): Promise<Answer<'token'>> {
  const { tokens, hint } = await open(cli, options);
  const { label, expires_at: expiresAt, ...limits } = body;
  const edited = await tokens.edit(id, { label, expiresAt, limits });
  if (!edited.ok) throw new CliFailure(edited.message, { hint });
  if (edited.value === undefined) throw notFound(id);
  return viewToken(edited.value);
}

const notFound = (id: string): CliFailure =>
  new CliFailure(`Token "${id}" not found`, { hint: 'List the tokens with "svcctl token list"' });

async function revokeItself(cli: Cli, options: TokenSecretOptions, id: string): Promise<void> {
  const { tokens, hint } = await open(cli, options);
  const revoked = await tokens.revoke(id);
  if (!revoked.ok) throw new CliFailure(revoked.message, { hint });
  if (!revoked.value) throw notFound(id);
}

/** Reads the Secret with the rights of the kubeconfig. Needs no running service, so it can create the first token. */
async function openSecret(options: TokenSecretOptions, { env }: Cli): Promise<SharedTokenText> {
  const [{ createKubeApi }, { createTokenRequests }, { SettingsSchema }] = await Promise.all([
    import('../../cluster/client/api-client.ts'),
    import('../../cluster/token-secret.ts'),
    import('../../schema/settings/settings.ts'),
  ]);
  const set = (key: string): string | undefined => (env[key] === '' ? undefined : env[key]);
  const name = SettingsSchema.shape.SVC_TOKENS_SECRET.safeParse(options.secret ?? set('SVC_TOKENS_SECRET'));
  if (!name.success) throw usageFailure('Invalid Secret name', 'Check --secret and SVC_TOKENS_SECRET');
  const api = await createKubeApi({
    env,
    context: options.context ?? set('SVCCTL_CONTEXT'),
    kubeconfigPath: options.kubeconfig,
    namespace: options.namespace ?? set('SVCCTL_NAMESPACE'),
    version: readVersion(),
  });
  if (!api.ok) throw new CliFailure(api.failure.message, { hint: 'List the contexts with "kubectl config get-contexts"' });
  const requests = createTokenRequests(api.value, name.data);
  let latest: SharedText | undefined;
  const shared: SharedTokenText = {
    ...requests,
    copy: () => latest,
    async read(signal) {
      const answer = await requests.read(signal);
      if (answer.ok) latest = answer.value;
      return answer;
    },
    async write(before, text, signal) {
      const written = await requests.write(before, text, signal);
      return written.ok ? { ok: true, value: undefined } : written;
    },
  };
  const first = await shared.read(AbortSignal.timeout(READ_TIMEOUT_MS));
  if (!first.ok) throw new CliFailure(`Could not read ${shared.name}: ${first.failure.message}`, { hint: SECRET_HINT });
  return shared;
}

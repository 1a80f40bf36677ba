/** Which service a verb talks to, and with which token. A token is never an argument, since every user of the host can read those. */
import { access, constants, open, readFile } from 'node:fs/promises';
import path from 'node:path';
import { LOCAL_SOCKET } from '../../schema/words/access.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';

/** The global options. */
export interface ServiceOptions {
  readonly server?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
  readonly kubeconfig?: string | undefined;
}

/** The options of verbs that compare files with the service. */
export interface FileOptions extends ServiceOptions {
  readonly file?: string;
  readonly prune?: boolean;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the service runs in a cluster: `--context`, `--namespace`, `--kubeconfig` or `SVCCTL_CONTEXT` is set. */
export function targetsCluster(options: ServiceOptions, env: Environment): boolean {
  const byOption = [options.context, options.namespace, options.kubeconfig].some((option) => option !== undefined);
  const byEnvironment = (env['SVCCTL_CONTEXT'] ?? '') !== '';
  if (options.server !== undefined) {
    if (byOption) throw usageFailure('Use either --server, or --context, -n and --kubeconfig for a service in a cluster');
    return false;
  }
  if (!byOption && byEnvironment && (env['SVCCTL_SERVER'] ?? '') !== '') {
    throw usageFailure(
      'Unset SVCCTL_SERVER or SVCCTL_CONTEXT: they name two different services',
      'Or choose one with --server or --context',
    );
  }
  return byOption || byEnvironment;
}

/** Returns `--server`, else `SVCCTL_SERVER`, else the address in `SVC_LISTEN`. Without a slash at the end. */
export async function serviceUrl(options: ServiceOptions, env: Environment): Promise<string> {
  const given = options.server ?? env['SVCCTL_SERVER'];
  if (given === undefined || given === '') return await listenUrl(env);
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw usageFailure(`Write the server as a URL: "${given}" is not a URL`, 'For example: --server http://127.0.0.1:8080');
  }
  if (url.username !== '' || url.password !== '') {
    throw usageFailure(
      'Remove the credentials from the URL of the server',
      'Put a token into SVCCTL_TOKEN, or into a file that --token-file names',
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

/** The schema of the settings is loaded only where one of them counts. */
async function listenUrl(env: Environment): Promise<string> {
  if (env['SVC_LISTEN'] === undefined) return 'http://127.0.0.1:8080';
  const { SettingsSchema } = await import('../../schema/settings/settings.ts');
  const listen = SettingsSchema.shape.SVC_LISTEN.safeParse(env['SVC_LISTEN']).data;
  return listen === undefined ? 'http://127.0.0.1:8080' : `http://${localAuthority(listen)}`;
}

/** `127.0.0.1:8080`: where to reach a service of this host that listens on the address. */
export function localAuthority({ host, port }: { readonly host: string; readonly port: number }): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return authority({ host: local, port });
}

/** `[::1]:8080`, with brackets around IPv6 addresses. */
export function authority({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Returns the first line of the file in `--token-file`, else `SVCCTL_TOKEN` or `SVC_TOKEN`, else the first line of the file in `SVCCTL_TOKEN_FILE`, else that of
 * `~/.config/svc/token`, if it exists. That file must be readable for its owner alone.
 */
export async function readToken(options: ServiceOptions, env: Environment): Promise<string | undefined> {
  return (await givenToken(options, env)) ?? parseToken(await defaultToken(env));
}

/** As `readToken`, without the file that belongs to no service in particular: a token in it is not for every cluster. */
export async function givenToken(options: ServiceOptions, env: Environment): Promise<string | undefined> {
  const given = options.tokenFile === undefined ? (env['SVCCTL_TOKEN'] ?? env['SVC_TOKEN']) : undefined;
  return parseToken(given ?? (await firstLine(options.tokenFile ?? env['SVCCTL_TOKEN_FILE'])));
}

/**
 * Returns the path of `api.sock` in the state directory if this user can open it: root, and the user of the service. Not where a server is named, and not where only
 * `SVC_LISTEN` is set, which then belongs to another service than that of the default directory.
 */
export async function findLocalSocket({ server }: ServiceOptions, env: Environment): Promise<string | undefined> {
  const isSet = (key: string): boolean => (env[key] ?? '') !== '';
  if (server !== undefined || isSet('SVCCTL_SERVER') || (isSet('SVC_LISTEN') && !isSet('SVC_STATE_DIR'))) return undefined;
  const file = path.join(path.resolve(isSet('SVC_STATE_DIR') ? (env['SVC_STATE_DIR'] ?? '') : '/var/lib/svc'), LOCAL_SOCKET);
  const usable = await access(file, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  return usable ? file : undefined;
}

function parseToken(text: string | undefined): string | undefined {
  const token = text?.trim() ?? '';
  if (token === '') return undefined;
  if (/[^\u0021-\u007E]/.test(token)) throw new CliFailure('Check the token: it contains characters that are not allowed in a token');
  return token;
}

/** Nobody has named this file, so its rights are checked, as `ssh` checks those of keys. */
async function defaultToken(env: Environment): Promise<string | undefined> {
  const config = env['XDG_CONFIG_HOME'] ?? (env['HOME'] === undefined ? undefined : path.join(env['HOME'], '.config'));
  if (config === undefined || !path.isAbsolute(config)) return undefined;
  const file = path.join(config, 'svc', 'token');
  const handle = await open(file).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const facts = await handle.stat();
    if (!facts.isFile()) return undefined;
    if ((facts.mode & 0o077) !== 0) {
      throw new CliFailure(`Run "chmod 600 ${file}": other users can read the token in it, or replace it`, {
        hint: 'If they may have read it, revoke it with "svcctl token revoke" and create another one',
      });
    }
    return (await handle.readFile('utf8')).split('\n')[0];
  } finally {
    await handle.close();
  }
}

async function firstLine(file: string | undefined): Promise<string | undefined> {
  if (file === undefined || file === '') return undefined;
  try {
    return (await readFile(file, 'utf8')).split('\n')[0];
  } catch (cause) {
    throw new CliFailure(`Could not read the token file "${file}"`, { cause, hint: 'Check --token-file and SVCCTL_TOKEN_FILE' });
  }
}

/** The service and the token of a verb. Tokens are never arguments, which every user of the host can read. */
import { access, constants, readFile } from 'node:fs/promises';
import path from 'node:path';
import { LOCAL_SOCKET } from '../../schema/words/access.ts';
import { stateDirOf, type Environment } from '../installation.ts';
import { openRegularFile, readRegularFile, UnsuitableFile } from '../../files/regular-file.ts';
import { succeeds } from '../../files/write-file.ts';
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

/** Whether the service runs in a cluster: `--context`, `--namespace`, `--kubeconfig` or `SVCCTL_CONTEXT` is set. */
export function targetsCluster(options: ServiceOptions, env: Environment): boolean {
  const byOption = [options.context, options.namespace, options.kubeconfig].some((option) => option !== undefined);
  const byEnvironment = (env['SVCCTL_CONTEXT'] ?? '') !== '';
  if (options.server !== undefined) {
    if (byOption) throw usageFailure('--server cannot be combined with --context, -n or --kubeconfig: these choose a service in a cluster');
    return false;
  }
  if (!byOption && byEnvironment && (env['SVCCTL_SERVER'] ?? '') !== '')
    throw usageFailure(
      'SVCCTL_SERVER and SVCCTL_CONTEXT name two different services',
      'Unset one of them, or choose a service with --server or --context',
    );
  return byOption || byEnvironment;
}

/** Returns `--server`, else `SVCCTL_SERVER`, else where the settings say. Without a slash at the end. */
export async function serviceUrl(options: ServiceOptions, env: Environment): Promise<string> {
  const given = options.server ?? env['SVCCTL_SERVER'];
  if (given === undefined || given === '') return await listenUrl(env);
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    throw usageFailure(`Invalid server "${given}": not a URL`, 'Use a URL such as http://127.0.0.1:8080');
  if (url.username !== '' || url.password !== '')
    throw usageFailure('The URL of the server contains credentials', 'Remove them, and set SVCCTL_TOKEN or --token-file instead');
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

/** Loads the schema of the settings only if one of them is set. */
async function listenUrl(env: Environment): Promise<string> {
  const address = env['SVC_MANAGEMENT_LISTEN'] ?? env['SVC_LISTEN'];
  if (address === undefined) return 'http://127.0.0.1:8080';
  const { SettingsSchema } = await import('../../schema/settings/settings.ts');
  const listen = SettingsSchema.shape.SVC_LISTEN.safeParse(address).data;
  return listen === undefined ? 'http://127.0.0.1:8080' : `http://${localAuthority(listen)}`;
}

/** Returns where programs on this host reach a service that listens on the address: `127.0.0.1:8080`. */
export function localAuthority({ host, port }: { readonly host: string; readonly port: number }): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return authority({ host: local, port });
}

/** `[::1]:8080`, with brackets around IPv6 addresses. */
export function authority({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Returns the first line of the file in `--token-file`, else `SVCCTL_TOKEN` or `SVC_TOKEN`, else the first line of the
 * file in `SVCCTL_TOKEN_FILE`, else the first line of `~/.config/svc/token`, which only its owner may be able to read.
 */
export async function readToken(options: ServiceOptions, env: Environment): Promise<string | undefined> {
  return (await givenToken(options, env)) ?? parseToken(await defaultToken(env));
}

/** `readToken` without `~/.config/svc/token`, which belongs to no cluster in particular. */
export async function givenToken(options: ServiceOptions, env: Environment): Promise<string | undefined> {
  const given = options.tokenFile === undefined ? (env['SVCCTL_TOKEN'] ?? env['SVC_TOKEN']) : undefined;
  return parseToken(given ?? (await firstLine(options.tokenFile ?? env['SVCCTL_TOKEN_FILE'])));
}

/**
 * Returns the path of `api.sock` in the state directory if this user can open it, as root and the user of the service
 * can. Undefined if a server is named, or if only `SVC_LISTEN` is set: it belongs to another service than the default
 * state directory.
 */
export async function findLocalSocket({ server }: ServiceOptions, env: Environment): Promise<string | undefined> {
  const isSet = (key: string): boolean => (env[key] ?? '') !== '';
  if (server !== undefined || isSet('SVCCTL_SERVER') || (isSet('SVC_LISTEN') && !isSet('SVC_STATE_DIR'))) return undefined;
  const file = path.join(stateDirOf(env), LOCAL_SOCKET);
  return (await succeeds(access(file, constants.R_OK | constants.W_OK))) ? file : undefined;
}

function parseToken(text: string | undefined): string | undefined {
  const token = text?.trim() ?? '';
  if (token === '') return undefined;
  if (/[^\u0021-\u007E]/.test(token))
    throw new CliFailure('Invalid token: it contains spaces, control characters or letters outside ASCII');
  return token;
}

/** Checks the permissions of the file as `ssh` checks keys, because the user has not named it. */
async function defaultToken(env: Environment): Promise<string | undefined> {
  const config = env['XDG_CONFIG_HOME'] ?? (env['HOME'] === undefined ? undefined : path.join(env['HOME'], '.config'));
  if (config === undefined || !path.isAbsolute(config)) return undefined;
  const file = path.join(config, 'svc', 'token');
  await using handle = await openRegularFile(file).catch(refuseUnsuitable);
  if (handle === undefined) return undefined;
  if (((await handle.stat()).mode & 0o077) === 0) return (await handle.readFile('utf8')).split('\n')[0];
  const hint = `Run "chmod 600 ${file}"; if the token may have leaked, revoke it with "svcctl token revoke" and create another one`;
  throw new CliFailure(`Other users can read or replace the token in "${file}"`, { hint });
}

function refuseUnsuitable(error: unknown): undefined {
  if (error instanceof UnsuitableFile) throw new CliFailure(error.message);
}

/** What a shell passes: standard input, and the pipe of `<(command)`. */
const PASSED_DESCRIPTOR = /^\/(?:dev\/(?:stdin|fd\/[0-9]+)|proc\/self\/fd\/[0-9]+)$/;

async function firstLine(file: string | undefined): Promise<string | undefined> {
  if (file === undefined || file === '') return undefined;
  try {
    return (await (PASSED_DESCRIPTOR.test(file) ? readFile(file, 'utf8') : readRegularFile(file))).split('\n')[0];
  } catch (cause) {
    refuseUnsuitable(cause);
    throw new CliFailure(`Could not read the token file "${file}"`, { cause, hint: 'Check --token-file and SVCCTL_TOKEN_FILE' });
  }
}

/** Which service a verb talks to, and the token it shows. A token never comes by the command line, where any user of the host could read it. */
import { readFile } from 'node:fs/promises';
import { SettingsSchema } from '../../schema/settings.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';

export interface ServerOptions {
  readonly server?: string | undefined;
  readonly tokenFile?: string | undefined;
  /** Of a kubeconfig: the service is asked through that cluster's API server. */
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
  readonly kubeconfig?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether a verb goes to a service in a cluster: one of `--context`, `--namespace` and `--kubeconfig` says so, or `SVCCTL_CONTEXT` does. */
export function meansCluster(options: ServerOptions, env: Environment): boolean {
  const named = [options.context, options.namespace, options.kubeconfig].some((option) => option !== undefined);
  const byEnvironment = (env['SVCCTL_CONTEXT'] ?? '') !== '';
  if (options.server !== undefined) {
    if (named) throw usageFailure('Name either a cluster with --context, -n or --kubeconfig, or an address with --server');
    return false;
  }
  if (!named && byEnvironment && (env['SVCCTL_SERVER'] ?? '') !== '') {
    throw usageFailure('Unset SVCCTL_SERVER or SVCCTL_CONTEXT: they name two services', 'Or choose with --server or --context');
  }
  return named || byEnvironment;
}

/** `--server`, else `SVCCTL_SERVER`, else where `SVC_LISTEN` says that a service of this host listens. No slash at the end. */
export function serverAddress(options: ServerOptions, env: Environment): string {
  const given = options.server ?? env['SVCCTL_SERVER'];
  if (given === undefined || given === '') return listenAddress(env);
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw usageFailure(`Write the server as a URL: "${given}" is none`, 'For instance --server http://127.0.0.1:8080');
  }
  if (url.username !== '' || url.password !== '') {
    throw usageFailure(
      'Leave the credentials out of the server’s URL',
      'Put a token into SVCCTL_TOKEN, or into a file named by --token-file',
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

function listenAddress(env: Environment): string {
  const parsed = SettingsSchema.shape.SVC_LISTEN.safeParse(env['SVC_LISTEN']);
  const listen = parsed.success ? parsed.data : undefined;
  if (listen === undefined) return 'http://127.0.0.1:8080';
  const host = listen.host === '0.0.0.0' ? '127.0.0.1' : listen.host === '::' ? '::1' : listen.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${listen.port}`;
}

/** `SVCCTL_TOKEN`, or the first line of the file that `--token-file` or `SVCCTL_TOKEN_FILE` names. */
export async function readToken(options: ServerOptions, env: Environment): Promise<string | undefined> {
  const file = options.tokenFile ?? env['SVCCTL_TOKEN_FILE'];
  const text = options.tokenFile === undefined && env['SVCCTL_TOKEN'] !== undefined ? env['SVCCTL_TOKEN'] : await fileText(file);
  const token = text?.trim() ?? '';
  if (token === '') return undefined;
  if (/[^\u0021-\u007E]/.test(token)) throw new CliFailure('Check the token: it holds characters that no token has');
  return token;
}

async function fileText(file: string | undefined): Promise<string | undefined> {
  if (file === undefined || file === '') return undefined;
  try {
    return (await readFile(file, 'utf8')).split('\n')[0];
  } catch (cause) {
    throw new CliFailure(`Could not read the token file "${file}"`, { cause, hint: 'Check --token-file and SVCCTL_TOKEN_FILE' });
  }
}

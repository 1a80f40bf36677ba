/** The address of an API server and what authenticates us to it. Types only: `find-credentials.ts` finds them. */
import type { Agent } from 'node:http';
import type { RequestOptions } from 'node:https';
import { access, readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { KubeConfig } from '@kubernetes/client-node';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { codeOf } from '../../platform/error-text.ts';

export type TlsOptions = Readonly<Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'pfx' | 'passphrase' | 'servername' | 'rejectUnauthorized'>>;

export interface Access {
  readonly headers: Readonly<Record<string, string>>;
  /** The same object as long as its contents are the same: connections depend on it. */
  readonly tls: TlsOptions;
  /** Present if requests go through a proxy. */
  readonly agent?: Agent;
}

export interface Credentials {
  /** `https://10.0.0.1:443`, without user and password. */
  readonly server: string;
  /** The namespace of the kubeconfig context or of the pod. */
  readonly namespace: string | undefined;
  /** Returns what the next request carries. Reads rotated tokens again from time to time. Throws if there are no credentials. */
  access(): Promise<Access>;
  /** Discards cached credentials after the server rejected them. Returns false if that happened a moment ago. */
  renew(): boolean;
}

/**
 * Finds the API server and the credentials: in a kubeconfig if there is one, otherwise in the service account of the pod. The service account
 * consists of three files, which are read here: loading `@kubernetes/client-node` takes 75 MB of RAM, so it is loaded only for a kubeconfig.
 */

export interface CredentialsOptions {
  /** `KUBECONFIG`, `HOME`, `KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly kubeconfigText?: string | undefined;
  /** Takes precedence over `env`. */
  readonly kubeconfigPath?: string | undefined;
  /** A context of the kubeconfig. Default: its current context. */
  readonly context?: string | undefined;
  readonly serviceAccountDir?: string | undefined;
}

const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet renews a token when a fifth of its lifetime (usually an hour) is left. */
const TOKEN_AGE_MS = 30_000;

/** Searches in the same order as `kubectl`: the given kubeconfig, `KUBECONFIG`, `~/.kube/config`, the service account. */
export async function findCredentials(options: CredentialsOptions): Promise<Result<Credentials>> {
  const { env, kubeconfigText, serviceAccountDir = SERVICE_ACCOUNT_DIR } = options;
  const paths = kubeconfigText === undefined ? await kubeconfigPaths(options) : [];
  if (kubeconfigText !== undefined || paths.length > 0) {
    const { createKubeconfigCredentials } = await import('./credentials.ts');
    return createKubeconfigCredentials({ text: kubeconfigText, paths, context: options.context });
  }
  if (options.context !== undefined) {
    return fail(
      'stalled',
      'NoCluster',
      `Set "KUBECONFIG" to a kubeconfig file with the context "${options.context}": no kubeconfig was found`,
    );
  }
  const host = env['KUBERNETES_SERVICE_HOST'];
  if (host !== undefined && (await exists(join(serviceAccountDir, 'token')))) {
    return await createServiceAccount(host, env['KUBERNETES_SERVICE_PORT'] ?? '443', serviceAccountDir);
  }
  return fail(
    'stalled',
    'NoCluster',
    'Set "KUBECONFIG" to a kubeconfig file, or run as a pod with a service account: no cluster is configured',
  );
}

async function kubeconfigPaths({ env, kubeconfigPath }: CredentialsOptions): Promise<readonly string[]> {
  if (kubeconfigPath !== undefined) return [kubeconfigPath];
  const listed = (env['KUBECONFIG'] ?? '').split(':').filter((path) => path !== '');
  if (listed.length > 0) return listed;
  const path = join(env['HOME'] ?? '/', '.kube', 'config');
  return (await exists(path)) ? [path] : [];
}

async function createServiceAccount(host: string, port: string, dir: string): Promise<Result<Credentials>> {
  let cached: { readonly token: string; readonly at: number } | undefined;
  let tls: TlsOptions = {};
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const namespace = await readFile(join(dir, 'namespace'), 'utf8').catch(() => '');
  return ok({
    server,
    namespace: namespace.trim() === '' ? undefined : namespace.trim(),
    async access() {
      if (cached === undefined || performance.now() - cached.at > TOKEN_AGE_MS) {
        const [token, ca] = await Promise.all([readFile(join(dir, 'token'), 'utf8'), readFile(join(dir, 'ca.crt'), 'utf8')]);
        cached = { token: token.trim(), at: performance.now() };
        if (tls.ca !== ca) tls = { ca };
      }
      return { headers: { authorization: `Bearer ${cached.token}` }, tls };
    },
    renew() {
      const isOld = cached !== undefined && performance.now() - cached.at > 1000;
      if (isOld) cached = undefined;
      return isOld;
    },
  });
}

const exists = async (path: string): Promise<boolean> =>
  await access(path).then(
    () => true,
    () => false,
  );

/** Credentials from a kubeconfig: certificates, tokens, token files, exec plugins and proxies, as `@kubernetes/client-node` supports them. */

export interface KubeconfigSource {
  readonly text: string | undefined;
  /** Used if there is no text. The files are merged, and the first one has precedence. */
  readonly paths: readonly string[];
  readonly context: string | undefined;
}

/** Files are read and plugins run again after this time. Plugins cache their tokens until they expire. */
const ACCESS_AGE_MS = 10_000;
/** A server that rejects everything must not make us run a plugin for each request. */
const RENEW_AGE_MS = 5000;

export function createKubeconfigCredentials(source: KubeconfigSource): Result<Credentials> {
  const loaded = loadSafely(source);
  if (!loaded.ok) return loaded;
  let config = loaded.value;
  const cluster = config.getCurrentCluster();
  const server = cluster === null ? undefined : serverOf(cluster.server);
  if (cluster === null || server === undefined) {
    return fail('stalled', 'NoCluster', `Name a cluster with an address in context "${config.getCurrentContext()}" of the kubeconfig`);
  }
  if (server.startsWith('http:') && cluster.skipTLSVerify !== true) {
    const message = `Set "insecure-skip-tls-verify: true" for the cluster of "${server}" in the kubeconfig: plain HTTP needs it`;
    return fail('stalled', 'NoCluster', message);
  }
  let cached: { readonly access: Promise<Access>; readonly at: number } | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;
  let tls: TlsOptions = {};

  async function readAccess(): Promise<Access> {
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const next = tlsOf(options);
    if (!isDeepStrictEqual(next, tls)) tls = next;
    const basic = typeof options.auth === 'string' ? { authorization: `Basic ${Buffer.from(options.auth).toString('base64')}` } : {};
    const headers = { ...basic, ...headersOf(options.headers) };
    const proxied = cluster?.proxyUrl !== undefined && typeof options.agent === 'object' ? { agent: options.agent } : {};
    return { headers, tls, ...proxied };
  }

  return ok({
    server,
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,
    async access() {
      if (cached === undefined || performance.now() - cached.at > ACCESS_AGE_MS) {
        cached = { access: readAccess(), at: performance.now() };
      }
      const { access } = cached;
      return await access.catch((error: unknown) => {
        if (cached?.access === access) cached = undefined;
        throw error;
      });
    },
    renew() {
      if (performance.now() - renewedAt < RENEW_AGE_MS) return false;
      renewedAt = performance.now();
      const reloaded = loadSafely(source);
      if (reloaded.ok) config = reloaded.value;
      cached = undefined;
      return reloaded.ok;
    },
  });
}

/** The text of the file is never part of a message, because it contains secrets. */
function loadSafely(source: KubeconfigSource): Result<KubeConfig> {
  const named = source.text === undefined ? `"${source.paths.join(':')}"` : 'that was passed in';
  const config = new KubeConfig();
  try {
    if (source.text !== undefined) config.loadFromString(source.text);
    else loadFiles(config, source.paths);
  } catch (error) {
    // Only errors of the file system have a code.
    return fail('stalled', 'NoCluster', `Correct the kubeconfig ${named}: it cannot be ${codeOf(error) === '' ? 'parsed' : 'read'}`);
  }
  if (source.context !== undefined) config.setCurrentContext(source.context);
  if (config.getContextObject(config.getCurrentContext()) !== null) return ok(config);
  const known = config.getContexts().map(({ name }) => `"${name}"`);
  const present = known.length === 0 ? '' : `, only ${known.join(', ')}`;
  return fail('stalled', 'NoCluster', `Choose a context of the kubeconfig ${named}: it has no "${config.getCurrentContext()}"${present}`);
}

function loadFiles(config: KubeConfig, paths: readonly string[]): void {
  const [first = '', ...others] = paths;
  config.loadFromFile(first);
  for (const path of others) {
    const other = new KubeConfig();
    other.loadFromFile(path);
    config.mergeConfig(other, true);
  }
}

function serverOf(text: string | undefined): string | undefined {
  if (text === undefined || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined;
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

function tlsOf({ ca, cert, key, pfx, passphrase, servername, rejectUnauthorized }: RequestOptions): TlsOptions {
  return { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized };
}

function headersOf(headers: RequestOptions['headers']): Readonly<Record<string, string>> {
  if (headers === undefined || Array.isArray(headers)) return {};
  const given = Object.entries(headers).flatMap(([key, value]): [string, string][] =>
    value === undefined ? [] : [[key.toLowerCase(), String(value)]],
  );
  return Object.fromEntries(given);
}

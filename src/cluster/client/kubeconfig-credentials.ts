/** Credentials from a kubeconfig: certificates, tokens, token files, exec plugins and proxies, as `@kubernetes/client-node` supports them. */
import type { RequestOptions } from 'node:https';
import { isDeepStrictEqual } from 'node:util';
import { KubeConfig } from '@kubernetes/client-node';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { codeOf } from '../../platform/error-text.ts';
import type { Access, Credentials, TlsOptions } from './credentials.ts';

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

/** Credentials from a kubeconfig: certificates, tokens, token files, exec plugins, OIDC and proxies. */
import { statSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { isDeepStrictEqual } from 'node:util';
import { KubeConfig } from '@kubernetes/client-node';
import { LARGE_TEXT_BYTES, refusalOf, UnsuitableFile } from '../../files/regular-file.ts';
import { codeOf } from '../../platform/error-text.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { Access, Credentials, TlsOptions } from './ports.ts';

interface KubeconfigSource {
  readonly text: string | undefined;
  /** Used if there is no text; the first file has precedence. */
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
  const server = serverOf(cluster?.server);
  if (server === undefined) return failed(`The context "${config.getCurrentContext()}" of the kubeconfig names no cluster with an address`);
  if (server.startsWith('http:') && cluster?.skipTLSVerify !== true)
    return failed(`The cluster of "${server}" uses plain HTTP: set "insecure-skip-tls-verify: true" for it in the kubeconfig`);
  let cached: { readonly access: Promise<Access>; readonly at: number } | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;
  let tls: TlsOptions = {};

  async function readAccess(): Promise<Access> {
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized, auth, agent } = options;
    const next = { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized };
    if (!isDeepStrictEqual(next, tls)) tls = next;
    const basic = typeof auth === 'string' ? { authorization: `Basic ${Buffer.from(auth).toString('base64')}` } : {};
    const proxied = cluster?.proxyUrl !== undefined && typeof agent === 'object' ? { agent } : {};
    return { headers: { ...basic, ...headersOf(options.headers) }, tls, ...proxied };
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

const failed = (message: string): Result<never> => fail('stalled', 'NoCluster', message);

/** The text of the file is never part of a message, because it contains secrets. */
function loadSafely({ text, paths, context }: KubeconfigSource): Result<KubeConfig> {
  const named = text === undefined ? `The kubeconfig "${paths.join(':')}"` : 'The given kubeconfig';
  const config = new KubeConfig();
  try {
    if (text !== undefined) config.loadFromString(text);
    else loadFiles(config, paths);
  } catch (error) {
    if (error instanceof UnsuitableFile) return failed(`The kubeconfig ${error.message}`);
    // Only errors of the file system have a code.
    return failed(
      codeOf(error) === '' ? `${named} cannot be parsed: correct it` : `${named} cannot be read: check its path and permissions`,
    );
  }
  if (context !== undefined) config.setCurrentContext(context);
  if (config.getContextObject(config.getCurrentContext()) !== null) return ok(config);
  const known = config.getContexts().map(({ name }) => `"${name}"`);
  const fix = known.length === 0 ? 'add one' : `choose ${known.join(', ')}`;
  return failed(`${named} has no context "${config.getCurrentContext()}": ${fix}`);
}

function loadFiles(config: KubeConfig, paths: readonly string[]): void {
  for (const path of paths) {
    const refusal = refusalOf(statSync(path), LARGE_TEXT_BYTES, `"${path}"`);
    if (refusal !== undefined) throw new UnsuitableFile(refusal);
  }
  const [first = '', ...others] = paths;
  config.loadFromFile(first);
  for (const path of others) {
    const other = new KubeConfig();
    other.loadFromFile(path);
    config.mergeConfig(other, true);
  }
}

function serverOf(text: string | undefined): string | undefined {
  const url = URL.parse(text ?? '');
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return undefined;
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

function headersOf(headers: RequestOptions['headers']): Readonly<Record<string, string>> {
  if (headers === undefined || Array.isArray(headers)) return {};
  const given = Object.entries(headers).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([key, value]) => [key.toLowerCase(), String(value)]));
}

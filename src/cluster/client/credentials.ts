/** Finds the API server and the credentials, in a kubeconfig or in the service account of the pod. */
import { access, readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { Credentials, TlsOptions } from './ports.ts';

export interface CredentialsOptions {
  /** `KUBECONFIG`, `HOME`, `KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly kubeconfigText?: string | undefined;
  /** Takes precedence over `env`. */
  readonly kubeconfigPath?: string | undefined;
  readonly context?: string | undefined;
  readonly serviceAccountDir?: string | undefined;
}

const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet renews a token when a fifth of its lifetime (usually an hour) is left. */
const TOKEN_AGE_MS = 30_000;

/** Searches like `kubectl`: the given kubeconfig, `KUBECONFIG`, `~/.kube/config`, the service account. */
export async function findCredentials(options: CredentialsOptions): Promise<Result<Credentials>> {
  const { env, kubeconfigText: text, context, serviceAccountDir: dir = SERVICE_ACCOUNT_DIR } = options;
  const paths = text === undefined ? await kubeconfigPaths(options) : [];
  if (text !== undefined || paths.length > 0) {
    // Loaded only for a kubeconfig: it takes 50 MB of memory (ADR 0027).
    const { createKubeconfigCredentials } = await import('./kubeconfig.ts');
    return createKubeconfigCredentials({ text, paths, context });
  }
  const missing = (message: string) => fail('stalled', 'NoCluster', message);
  if (context !== undefined) return missing(`No kubeconfig was found: set "KUBECONFIG" to a file with the context "${context}"`);
  const host = env['KUBERNETES_SERVICE_HOST'];
  if (host === undefined || !(await exists(join(dir, 'token'))))
    return missing('No cluster is configured: set "KUBECONFIG" to a kubeconfig file, or run as a pod with a service account');
  return ok(await readServiceAccount(host, env['KUBERNETES_SERVICE_PORT'] ?? '443', dir));
}

async function kubeconfigPaths({ env, kubeconfigPath }: CredentialsOptions): Promise<readonly string[]> {
  if (kubeconfigPath !== undefined) return [kubeconfigPath];
  const listed = (env['KUBECONFIG'] ?? '').split(':').filter((path) => path !== '');
  const path = join(env['HOME'] ?? '/', '.kube', 'config');
  return listed.length > 0 ? listed : (await exists(path)) ? [path] : [];
}

async function readServiceAccount(host: string, port: string, dir: string): Promise<Credentials> {
  let cached: { readonly token: string; readonly at: number } | undefined;
  let tls: TlsOptions = {};
  const namespace = (await readFile(join(dir, 'namespace'), 'utf8').catch(() => '')).trim();
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    namespace: namespace === '' ? undefined : namespace,
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
  };
}

const exists = async (path: string): Promise<boolean> => (await access(path).catch(() => false)) !== false;

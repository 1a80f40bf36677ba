/**
 * Finds the API server and the credentials: in a kubeconfig if there is one, otherwise in the service account of the pod. The service account
 * consists of three files, which are read here: loading `@kubernetes/client-node` takes 75 MB of RAM, so it is loaded only for a kubeconfig.
 */
import { access, readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { Credentials, TlsOptions } from './credentials.ts';

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
    const { createKubeconfigCredentials } = await import('./kubeconfig-credentials.ts');
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

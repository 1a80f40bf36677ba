/**
 * Where the API server is and how to prove who we are: a kubeconfig when there is one, else the pod's own service account. The latter is three
 * files, read here: `@kubernetes/client-node` costs 75 MB of memory, which only those pay who need a kubeconfig.
 */
import { access, readFile } from 'node:fs/promises';
import type { Agent } from 'node:http';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { SecureContextOptions } from 'node:tls';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';

export interface TlsOptions extends Pick<SecureContextOptions, 'ca' | 'cert' | 'key' | 'pfx' | 'passphrase'> {
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface Access {
  readonly headers: Readonly<Record<string, string>>;
  /** The same object as long as nothing in it changes: connections depend on it. */
  readonly tls: TlsOptions;
  /** Through a proxy. */
  readonly agent?: Agent;
}

export interface Credentials {
  /** `https://10.0.0.1:443`, without user and password. */
  readonly server: string;
  /** Of the context, or of the pod. */
  readonly namespace: string | undefined;
  /** What the next request carries; reads rotated tokens again now and then. Throws when there is none to be had. */
  access(): Promise<Access>;
  /** After the server did not accept them: whatever is remembered is read anew. False when that was done just now. */
  renew(): boolean;
}

export interface CredentialsOptions {
  /** `KUBECONFIG`, `HOME`, `KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly kubeconfigText?: string | undefined;
  /** Rather than what `env` says. */
  readonly kubeconfigPath?: string | undefined;
  /** Of the kubeconfig; default: its current one. */
  readonly context?: string | undefined;
  readonly serviceAccountDir?: string | undefined;
}

const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet renews a token when a fifth of its life (an hour, as a rule) is left. */
const TOKEN_AGE_MS = 30_000;

/** In the order of `kubectl`: what was asked for, `KUBECONFIG`, `~/.kube/config`, the service account. */
export async function findCredentials(options: CredentialsOptions): Promise<Result<Credentials>> {
  const { env, kubeconfigText, serviceAccountDir = SERVICE_ACCOUNT_DIR } = options;
  const paths = kubeconfigText === undefined ? await kubeconfigPaths(options) : [];
  if (kubeconfigText !== undefined || paths.length > 0) {
    const { createKubeconfigCredentials } = await import('./kubeconfig-credentials.ts');
    return createKubeconfigCredentials({ text: kubeconfigText, paths, context: options.context });
  }
  if (options.context !== undefined) {
    return fail('stalled', 'NoCluster', `Set "KUBECONFIG": there is no kubeconfig that could hold the context "${options.context}"`);
  }
  const host = env['KUBERNETES_SERVICE_HOST'];
  if (host !== undefined && (await exists(join(serviceAccountDir, 'token')))) {
    return await createServiceAccount(host, env['KUBERNETES_SERVICE_PORT'] ?? '443', serviceAccountDir);
  }
  return fail('stalled', 'NoCluster', 'Set "KUBECONFIG" to a kubeconfig file, or run as a pod with a service account: no cluster is known');
}

async function kubeconfigPaths({ env, kubeconfigPath }: CredentialsOptions): Promise<readonly string[]> {
  if (kubeconfigPath !== undefined) return [kubeconfigPath];
  const listed = (env['KUBECONFIG'] ?? '').split(':').filter((path) => path !== '');
  if (listed.length > 0) return listed;
  const own = join(env['HOME'] ?? '/', '.kube', 'config');
  return (await exists(own)) ? [own] : [];
}

async function createServiceAccount(host: string, port: string, dir: string): Promise<Result<Credentials>> {
  let remembered: { readonly token: string; readonly at: number } | undefined;
  let tls: TlsOptions = {};
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const namespace = await readFile(join(dir, 'namespace'), 'utf8').catch(() => '');
  return ok({
    server,
    namespace: namespace.trim() === '' ? undefined : namespace.trim(),
    async access() {
      if (remembered === undefined || Date.now() - remembered.at > TOKEN_AGE_MS) {
        const [token, ca] = await Promise.all([readFile(join(dir, 'token'), 'utf8'), readFile(join(dir, 'ca.crt'), 'utf8')]);
        remembered = { token: token.trim(), at: Date.now() };
        if (tls.ca !== ca) tls = { ca };
      }
      return { headers: { authorization: `Bearer ${remembered.token}` }, tls };
    },
    renew() {
      const old = remembered !== undefined && Date.now() - remembered.at > 1000;
      if (old) remembered = undefined;
      return old;
    },
  });
}

const exists = async (path: string): Promise<boolean> =>
  await access(path).then(
    () => true,
    () => false,
  );

/**
 * Gives a process what a pod of the chart has: a service account with the chart's permissions, and its files in the usual place. With a kubeconfig, the
 * controller would load a library of 75 MB, which it never does in a pod.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import type { KubeApi, KubeManifest, ResourceType } from '../src/cluster/client/ports.ts';
import { createKubeApi } from '../src/cluster/client/api-client.ts';
import { CONNECTIONS, unwrap } from './cluster-bed.ts';
import { waitUntil } from './wait-until.ts';

export interface PodAccount {
  /** A client with the account's permissions. */
  readonly api: KubeApi;
  readonly env: Readonly<Record<string, string>>;
  /** A command that runs the program given as its last arguments in its own mount namespace, in which the files are visible. */
  readonly runner: readonly [string, ...string[]];
  dispose(): Promise<void>;
}

const type = (group: string, plural: string, kind: string): ResourceType => ({ group, version: 'v1', plural, kind, namespaced: true });
const ROLES = type('rbac.authorization.k8s.io', 'roles', 'Role');
const BINDINGS = type('rbac.authorization.k8s.io', 'rolebindings', 'RoleBinding');
const ACCOUNTS = type('', 'serviceaccounts', 'ServiceAccount');
const SECRETS = type('', 'secrets', 'Secret');
const RULES = 'manifests/base/rbac.yaml';
const NAME = 'svc';
const TOKEN_MS = 10_000;
const never = new AbortController().signal;

/** Root needs a mount namespace only; other users also need a user namespace, which some systems forbid. */
const UNSHARE = ['--mount', ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']), '--'];
const MOUNTS = 'mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && ln -s "$1" /run/secrets/kubernetes.io/serviceaccount';

/** Returns why this cannot be done on this machine; undefined if it can. */
export async function whyNoPodAccount(): Promise<string | undefined> {
  const failed = await promisify(execFile)('unshare', [...UNSHARE, 'true']).then(
    () => false,
    () => true,
  );
  return failed ? 'this user may not create a mount namespace ("unshare")' : undefined;
}

export async function openPodAccount(api: KubeApi): Promise<PodAccount> {
  unwrap(await api.create(ACCOUNTS, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME } }, never));
  const rights = parseAllDocuments(await readFile(RULES, 'utf8')).map((document): KubeManifest => document.toJS());
  const role = rights.find(({ kind }) => kind === 'Role');
  if (role === undefined) throw new Error(`"${RULES}" has no Role`);
  const metadata = { name: NAME };
  unwrap(await api.create(ROLES, { ...role, metadata }, never));
  const subjects = [{ kind: 'ServiceAccount', name: NAME, namespace: api.namespace }];
  const roleRef = { apiGroup: ROLES.group, kind: 'Role', name: NAME };
  unwrap(await api.create(BINDINGS, { apiVersion: `${BINDINGS.group}/v1`, kind: 'RoleBinding', metadata, roleRef, subjects }, never));
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-bench-account-'));
  for (const [file, text] of Object.entries(await readToken(api))) await writeFile(path.join(dir, file), text, { mode: 0o600 });
  const { hostname, port } = new URL(api.server);
  const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port === '' ? '443' : port };
  const { namespace } = api;
  return {
    api: unwrap(
      await createKubeApi({ env: { ...env, HOME: dir }, serviceAccountDir: dir, namespace, version: 'bench', concurrency: CONNECTIONS }),
    ),
    env,
    runner: runnerIn(dir),
    dispose: async () => await rm(dir, { recursive: true, force: true }),
  };
}

/** The directory has the files of a service account. */
export const runnerIn = (dir: string): PodAccount['runner'] => [
  'unshare',
  ...UNSHARE,
  'sh',
  '-c',
  `${MOUNTS} && shift && exec "$@"`,
  'sh',
  dir,
];

/** Creates a token Secret and waits until the control plane has filled it in, which works in every version of Kubernetes. */
async function readToken(api: KubeApi): Promise<Readonly<Record<'token' | 'ca.crt' | 'namespace', string>>> {
  const metadata = { name: `${NAME}-token`, annotations: { 'kubernetes.io/service-account.name': NAME } };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/service-account-token' };
  unwrap(await api.create(SECRETS, secret, never));
  return waitUntil(
    async () => {
      const { data }: { readonly metadata: object; readonly data?: Readonly<Record<string, string>> } = unwrap(
        await api.get(SECRETS, metadata.name, never),
      );
      const text = (key: string): string => Buffer.from(data?.[key] ?? '', 'base64').toString('utf8');
      return text('token') !== '' && { token: text('token'), 'ca.crt': text('ca.crt'), namespace: api.namespace };
    },
    { withinMs: TOKEN_MS, everyMs: 100, failure: () => 'The control plane did not create a token for the service account' },
  );
}

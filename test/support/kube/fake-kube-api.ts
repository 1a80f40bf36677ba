/**
 * A Kubernetes API server in this process, for tests that must be fast or need faults: list, watch with bookmarks, optimistic concurrency, merge
 * patch, server-side apply, the status subresource, deletion with owners and grace periods, and injected faults. It has no admission, no defaults, no
 * validation and no controllers: a Deployment has no pods unless the test writes them (`put`). It must not be more forgiving than a real server.
 *
 *     const fake = await startFakeKubeApi();
 *     const api = await createKubeApi({ kubeconfigText: fake.kubeconfig('demo'), … });
 *     fake.faults.answer({ verb: 'list', resource: 'pods' }, { status: 500 }, 3);
 *     fake.watches.silence();
 *     await fake.close();
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { createFakeDeletion, type FakeDeletion } from './fake-kube-deletion.ts';
import { createFakeFaults, type FakeFaults, type LoggedRequest, type InjectedAnswer } from './fake-kube-faults.ts';
import { createFakeHandler } from './fake-kube-handler.ts';
import { createFakeLists, type FakeLists, type StreamedLists } from './fake-kube-lists.ts';
import { parseRequest, statusBody } from './fake-kube-requests.ts';
import { createFakeStore, type FakeStore } from './fake-kube-store.ts';
import { createFakeWatches, type FakeWatches } from './fake-kube-watches.ts';
import { createFakeVersions, WITHOUT_DEFINITIONS } from './fake-kube-definitions.ts';
import {
  DEFINED_RESOURCES,
  DRA_RESOURCES,
  resourceName,
  SentObject,
  SERVED,
  type FakeResource,
  type StoredObject,
} from './fake-kube-types.ts';
import { DEFINITIONS } from '../../../src/cluster/client/decide/resource-path.ts';
import type { ResourceType } from '../../../src/cluster/client/ports.ts';

export interface FakeKubeOptions {
  /** Serves DeviceClasses and ResourceClaimTemplates. */
  readonly dra?: boolean;
  /** Serves CustomResourceDefinitions. Once there is one of SlotSpecs, it says which of their versions are served and stored, and with which fields. */
  readonly definitions?: boolean;
  readonly bookmarkMs?: number;
  /** The longest time for which a terminating pod exists. */
  readonly longestGraceMs?: number;
  /** Removes dependents of removed objects. Default: true. */
  readonly collects?: boolean;
  /** Bearer token that every request must carry. */
  readonly token?: string;
  /** Default: refused. */
  readonly streamedLists?: StreamedLists;
}

export interface FakeKubeApi {
  readonly url: string;
  readonly store: FakeStore;
  readonly faults: FakeFaults;
  readonly watches: FakeWatches;
  readonly lists: Pick<FakeLists, 'freezeCache' | 'thawCache'>;
  /** Text of a kubeconfig (JSON is YAML) for this server. */
  kubeconfig(namespace?: string, token?: string): string;
  /** Objects of one kind in all namespaces, or in one. */
  objects(type: ResourceType, namespace?: string): readonly StoredObject[];
  /** A write by another client: creates or replaces the object, including its `status` if there is one. Throws if the server refuses it. */
  put(type: ResourceType, namespace: string, object: Readonly<Record<string, unknown>>): StoredObject;
  /** A deletion by another client. A pod is removed immediately. With `Orphan`, what the object owns stays and has no owner any more. */
  remove(type: ResourceType, namespace: string, name: string, propagation?: 'Orphan'): void;
  /** From now on every request must carry this bearer token. */
  requireToken(token: string): void;
  /** Sets the response of `…/pods/NAME/log`. */
  setLog(pod: string, lines: string): void;
  /** Discards the history: the next pages of lists and watches from older versions fail with 410. */
  compact(): void;
  /** Closes the port and all connections. */
  goDown(): Promise<void>;
  /** Listens on the same port again. */
  comeUp(): Promise<void>;
  close(): Promise<void>;
}

const MANUAL = { manager: 'kubectl-edit', operation: 'Update' } as const;

export async function startFakeKubeApi(options: FakeKubeOptions = {}): Promise<FakeKubeApi> {
  const { dra = false, definitions = false } = options;
  const served: readonly FakeResource[] = [...SERVED, ...(dra ? DRA_RESOURCES : []), ...(definitions ? DEFINED_RESOURCES : [])];
  const versions = definitions ? createFakeVersions((name) => findDefinition(store, name)) : WITHOUT_DEFINITIONS;
  const store = createFakeStore(versions);
  const deletion = createFakeDeletion(store, options.longestGraceMs ?? 1000, options.collects);
  const faults = createFakeFaults();
  const watches = createFakeWatches(store, options.bookmarkMs ?? 60_000);
  const lists = createFakeLists(store);
  const logs = new Map<string, string>();
  const { streamedLists = 'refused' } = options;
  const handle = createFakeHandler({ store, versions, lists, streamedLists, deletion, watches, served, logs });
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    void answer(request, response).catch((error: unknown) => {
      response.destroy();
      process.stderr.write(`The fake API server failed: ${String(error)}\n`);
    });
  };
  let token = options.token;
  let server = createServer(listener);
  const port = await listen(server, 0);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parsed = parseRequest(request.method ?? 'GET', request.url ?? '/', served);
    const logged: LoggedRequest = {
      at: Date.now(),
      verb: parsed.verb,
      ...parsed.named,
      url: request.url ?? '/',
      userAgent: request.headers['user-agent'] ?? '',
      authorization: request.headers.authorization ?? '',
      status: 0,
    };
    faults.record(logged);
    const [body, injected] = await Promise.all([text(request), faults.apply(logged)]);
    response.on('finish', () => (logged.status = response.statusCode));
    if (injected !== undefined) return sendInjected(response, injected);
    if (token !== undefined && logged.authorization !== `Bearer ${token}`) {
      return sendInjected(response, { status: 401, reason: 'Unauthorized', message: 'Unauthorized' });
    }
    const gzip = request.headers['accept-encoding'] === 'gzip';
    handle(parsed, { body, contentType: request.headers['content-type'] ?? '', userAgent: logged.userAgent, gzip }, response);
  }

  const fake: FakeKubeApi = {
    url: `http://127.0.0.1:${port}`,
    store,
    faults,
    watches,
    lists,
    kubeconfig: (namespace = 'default', carried = token) => kubeconfigText(fake.url, namespace, carried),
    objects: (type, namespace) => store.list(known(type, served), namespace),
    put: (type, namespace, object) => put(store, deletion, known(type, served), namespace, SentObject.parse(object)),
    remove(type, namespace, name, propagation) {
      const resource = known(type, served);
      deletion.remove({ resource, namespace: resource.namespaced ? namespace : '', name }, { graceSeconds: 0, propagation });
    },
    requireToken(required) {
      token = required;
    },
    setLog: (pod, lines) => void logs.set(pod, lines),
    compact: () => store.compact(),
    async goDown() {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
    async comeUp() {
      server = createServer(listener);
      await listen(server, port);
    },
    async close() {
      watches.close();
      deletion.close();
      if (server.listening) await fake.goDown();
    },
  };
  return fake;
}

function findDefinition(store: FakeStore, name: string): StoredObject | undefined {
  const found = store.get({ resource: { ...DEFINITIONS, hasStatus: true }, namespace: '', name });
  return found.done ? found.value : undefined;
}

function put(store: FakeStore, deletion: FakeDeletion, resource: FakeResource, namespace: string, sent: SentObject): StoredObject {
  const address = { resource, namespace: resource.namespaced ? namespace : '', name: sent.metadata?.name ?? '' };
  const exists = store.get(address).done;
  let written = exists ? store.replace(address, sent, MANUAL) : store.create(resource, address.namespace, sent, MANUAL);
  if (written.done && resource.hasStatus && 'status' in sent) {
    const latest = { ...written.value, status: sent['status'] };
    written = store.replace(address, latest, { ...MANUAL, subresource: 'status' });
  }
  if (!written.done) throw new Error(`The fake API server refused ${resourceName(resource)}: ${written.refusal.message}`);
  deletion.collect();
  return written.value;
}

function known(type: ResourceType, served: readonly FakeResource[]): FakeResource {
  const resource = served.find((each) => each.group === type.group && each.plural === type.plural);
  if (resource === undefined) throw new Error(`The fake API server does not serve ${resourceName(type)}`);
  return resource;
}

async function listen(server: Server, port: number): Promise<number> {
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The fake API server has no port');
  return address.port;
}

function sendInjected(response: ServerResponse, { status, reason, message, retryAfterSeconds }: InjectedAnswer): void {
  if (status === 'cut') {
    response.destroy();
    return;
  }
  const retry = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
  response.writeHead(status, { 'content-type': 'application/json', ...retry });
  response.end(JSON.stringify(statusBody({ code: status, reason: reason ?? 'InternalError', message: message ?? 'injected by the test' })));
}

function kubeconfigText(server: string, namespace: string, token: string | undefined): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'fake', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'tester', user: token === undefined ? {} : { token } }],
    contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'tester', namespace } }],
    'current-context': 'fake',
  });
}

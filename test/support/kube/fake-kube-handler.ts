/** Handles the requests to the fake API server: maps verbs on resources to operations of the store, and their results to HTTP. */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import type { FakeDeletion } from './fake-kube-deletion.ts';
import { isFields, type Fields } from './fake-kube-fields.ts';
import { discovery, noSuchPage, statusBody, type Parsed, type Target } from './fake-kube-requests.ts';
import { fieldSelector, labelSelector, type Selector } from './fake-kube-selectors.ts';
import type { FakeVersions } from './fake-kube-definitions.ts';
import type { FakeLists, StreamedLists } from './fake-kube-lists.ts';
import type { Address, FakeStore } from './fake-kube-store.ts';
import { done, refuse, SentObject, type FakeResource, type Outcome } from './fake-kube-types.ts';
import type { FakeWatches } from './fake-kube-watches.ts';

export interface HandlerParts {
  readonly store: FakeStore;
  readonly versions: FakeVersions;
  readonly lists: FakeLists;
  readonly streamedLists: StreamedLists;
  readonly deletion: FakeDeletion;
  readonly watches: FakeWatches;
  readonly served: readonly FakeResource[];
  readonly logs: ReadonlyMap<string, string>;
}

interface Content {
  readonly body: string;
  readonly contentType: string;
  readonly userAgent: string;
  /** The client accepts a compressed response. */
  readonly gzip: boolean;
}

export type FakeHandler = (parsed: Parsed, content: Content, response: ServerResponse) => void;

interface Answer {
  readonly code: number;
  readonly body: unknown;
}

/** Characters of all keys and values together, as a server counts bytes. */
const MOST_ANNOTATIONS = 262_144;
const LONGEST_WATCH_MS = 1_800_000;
/** As in real API servers. */
const COMPRESSED_ABOVE_BYTES = 128 * 1024;

export function createFakeHandler(parts: HandlerParts): FakeHandler {
  const { store, versions, lists, deletion, watches, served, logs } = parts;

  function readSelectors(query: URLSearchParams): Outcome<Selector> {
    const labels = labelSelector(query.get('labelSelector') ?? '');
    const fields = fieldSelector(query.get('fieldSelector') ?? '');
    if (labels === undefined || fields === undefined) return refuse(400, 'BadRequest', 'unable to parse requirement of the selector');
    return done((object) => labels(object) && fields(object));
  }

  function watch({ query }: Parsed, { resource, namespace }: Target, response: ServerResponse): Outcome<never> | undefined {
    const selects = readSelectors(query);
    if (!selects.done) return selects;
    const version = query.get('resourceVersion') ?? '';
    const wrong = lists.refuseOptions(query, parts.streamedLists);
    if (wrong !== undefined) return wrong;
    const isStreamed = query.get('sendInitialEvents') === 'true';
    if (isStreamed && parts.streamedLists === 'failed') {
      const message = 'the required storage feature RequestWatchProgress is disabled';
      response.end(`${JSON.stringify({ type: 'ERROR', object: statusBody({ code: 500, reason: 'InternalError', message }) })}\n`);
      return undefined;
    }
    watches.open(response, {
      resource,
      namespace: resource.namespaced ? namespace : undefined,
      from: version === '' || version === '0' || isStreamed ? undefined : Number(version),
      marksEnd: isStreamed && parts.streamedLists === 'served',
      selects: selects.value,
      bookmarks: query.get('allowWatchBookmarks') === 'true',
      timeoutMs: Math.min(Number(query.get('timeoutSeconds') ?? '1800') * 1000, LONGEST_WATCH_MS),
    });
    return undefined;
  }

  function list({ query }: Parsed, { resource, namespace }: Target): Outcome<Answer> {
    const selects = readSelectors(query);
    if (!selects.done) return selects;
    return (
      lists.refuseOptions(query, parts.streamedLists) ??
      lists.page(resource, resource.namespaced ? namespace : undefined, selects.value, query)
    );
  }

  function write(parsed: Parsed, target: Target, content: Content): Outcome<Answer> {
    const { resource, name, subresource } = target;
    if (subresource !== '' && !(subresource === 'status' && resource.hasStatus)) return noSuchPage();
    if (resource.namespaced && target.namespace === undefined)
      return refuse(405, 'MethodNotAllowed', 'the server does not allow this method');
    const sent = readBody(content.body, resource, name);
    if (!sent.done) return sent;
    const metadata = isFields(sent.value['metadata']) ? sent.value['metadata'] : {};
    if (metadata['namespace'] !== undefined && metadata['namespace'] !== target.namespace) {
      return refuse(400, 'BadRequest', 'the namespace of the provided object does not match the namespace sent on the request');
    }
    const annotations = isFields(metadata['annotations']) ? metadata['annotations'] : {};
    if (Object.entries(annotations).flat().join('').length > MOST_ANNOTATIONS)
      return refuse(422, 'Invalid', `metadata.annotations: Too long: must have at most ${MOST_ANNOTATIONS} bytes`);
    const before = store.version();
    const result = carryOut(parsed, target, content, sent.value);
    if (store.version() !== before) deletion.collect();
    return result;
  }

  function carryOut({ verb, query }: Parsed, target: Target, { contentType, userAgent }: Content, body: Fields): Outcome<Answer> {
    const address: Address = { resource: target.resource, namespace: target.namespace ?? '', name: target.name };
    const manager = query.get('fieldManager') ?? (userAgent.split('/')[0] || 'unknown');
    const subresource = target.subresource === 'status' ? 'status' : undefined;
    const origin = { manager, operation: 'Update', subresource } as const;
    if (verb === 'patch' && contentType.startsWith('application/merge-patch+json')) {
      return answerWith(store.mergePatch(address, body, origin), 200);
    }
    const parsed = SentObject.safeParse(body);
    if (!parsed.success) return refuse(400, 'BadRequest', `error decoding: ${parsed.error.message}`);
    const sent = parsed.data;
    if (verb === 'create') return answerWith(store.create(target.resource, address.namespace, sent, origin), 201);
    if (verb === 'update') return answerWith(store.replace(address, sent, origin), 200);
    if (!contentType.startsWith('application/apply-patch+yaml'))
      return refuse(415, 'UnsupportedMediaType', `the body of the request was in an unknown format "${contentType}"`);
    if (sent.kind === undefined) return refuse(400, 'BadRequest', 'invalid object type: the kind is missing');
    if (query.get('fieldManager') === null)
      return refuse(422, 'Invalid', 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch');
    const applied = store.apply(address, sent, { ...origin, operation: 'Apply' }, query.get('force') === 'true');
    return applied.done ? done({ code: applied.value.created ? 201 : 200, body: applied.value.object }) : applied;
  }

  function remove({ query }: Parsed, { resource, namespace, name }: Target, { body }: Content): Outcome<Answer> {
    if (name === '') return refuse(405, 'MethodNotAllowed', 'the fake server does not delete collections');
    const options: unknown = body === '' ? {} : JSON.parse(body);
    const given = isFields(options) ? options : {};
    const preconditions = isFields(given['preconditions']) ? given['preconditions'] : {};
    const grace = query.get('gracePeriodSeconds') ?? given['gracePeriodSeconds'];
    const result = deletion.remove(
      { resource, namespace: namespace ?? '', name },
      {
        graceSeconds: grace === undefined || grace === null ? undefined : Number(grace),
        propagation: query.get('propagationPolicy') ?? textOf(given['propagationPolicy']),
        uid: textOf(preconditions['uid']),
        resourceVersion: textOf(preconditions['resourceVersion']),
      },
    );
    if (!result.done) return result;
    return done({ code: 200, body: result.value.gone && resource.plural !== 'pods' ? SUCCESS : result.value.object });
  }

  return (parsed, content, response) => {
    const { target, verb } = parsed;
    if (target === undefined) return send(response, answerWith(verb === 'other' ? discovery(parsed.path, served) : noSuchPage(), 200));
    if (!versions.serves(target.resource)) return send(response, noSuchPage());
    if (verb === 'watch') {
      const refused = watch(parsed, target, response);
      return refused === undefined ? undefined : send(response, refused);
    }
    if (verb === 'list') return send(response, list(parsed, target), content.gzip);
    if (verb === 'delete') return send(response, remove(parsed, target, content));
    if (verb !== 'get') return send(response, write(parsed, target, content));
    if (target.subresource === 'log') {
      response.writeHead(200, { 'content-type': 'text/plain' });
      return void response.end(logs.get(target.name) ?? '');
    }
    send(response, answerWith(store.get({ ...target, namespace: target.namespace ?? '' }), 200));
  };
}

const SUCCESS = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

function answerWith(outcome: Outcome<unknown>, code: number): Outcome<Answer> {
  return outcome.done ? done({ code, body: outcome.value }) : outcome;
}

function readBody(body: string, resource: FakeResource, name: string): Outcome<Fields> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch (error) {
    return refuse(400, 'BadRequest', `error decoding: ${String(error)}`);
  }
  if (!isFields(parsed)) return refuse(400, 'BadRequest', 'error decoding: the body is not an object');
  const metadata = isFields(parsed['metadata']) ? parsed['metadata'] : {};
  if (parsed['kind'] !== undefined && parsed['kind'] !== resource.kind) {
    return refuse(
      400,
      'BadRequest',
      `${JSON.stringify(parsed['kind'])} in version ${JSON.stringify(parsed['apiVersion'])} cannot be handled as a ${resource.kind}`,
    );
  }
  if (name !== '' && metadata['name'] !== undefined && metadata['name'] !== name) {
    return refuse(400, 'BadRequest', 'the name of the object does not match the name on the URL');
  }
  return done(parsed);
}

function send(response: ServerResponse, outcome: Outcome<Answer>, gzip = false): void {
  const { code, body } = outcome.done ? outcome.value : { code: outcome.refusal.code, body: statusBody(outcome.refusal) };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const isCompressed = gzip && text.length > COMPRESSED_ABOVE_BYTES;
  response.writeHead(code, { 'content-type': 'application/json', ...(isCompressed ? { 'content-encoding': 'gzip' } : {}) });
  response.end(isCompressed ? gzipSync(text, { level: 4 }) : text);
}

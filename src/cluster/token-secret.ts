/**
 * The tokens of a cluster: the key `tokens.toml` of one Secret, of which every replica keeps a copy (ADR 0077). Writes
 * carry the resource version on which they are based: of two writers, one has to begin again.
 */
import type { SharedText, SharedTokenText } from '../auth/shared-token-store.ts';
import type { Log } from '../platform/log.ts';
import { defined, valueAt } from '../schema/pod/kube-fields.ts';
import { ok, type Result } from '../schema/words/failure.ts';
import { isTable } from '../schema/words/key-case.ts';
import type { KubeApi, KubeObject } from './client/ports.ts';
import { createReflector, wasListed, type ReflectorOptions } from './client/reflector.ts';
import { parseOnce } from './client/object-copy.ts';
import { SECRETS } from './client/decide/resource-path.ts';

export interface TokenSecret extends SharedTokenText {
  changes(wake: () => void, signal: AbortSignal): void;
  start(signal: AbortSignal): void;
}

export interface TokenSecretOptions extends Pick<ReflectorOptions, 'clock' | 'observer'> {
  readonly api: KubeApi;
  readonly name: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

const KEY = 'tokens.toml';
/** Kubernetes allows 1 MiB for all keys of a Secret. Some 4,000 tokens. */
const LIMIT_BYTES = 1024 * 1024;
/** A watch that silently misses a change would keep a revoked token valid; a list of one object costs nothing. */
const RELIST_MS = 300_000;
const ABSENT: SharedText = { text: '', version: '' };

/** Reads and writes of the Secret, without a copy: what `svcctl` needs. */
export function createTokenRequests(api: Pick<KubeApi, 'get' | 'mergePatch' | 'namespace'>, name: string) {
  return {
    name: `the Secret "${name}" in namespace "${api.namespace}"`,
    limitBytes: LIMIT_BYTES,
    async read(signal: AbortSignal): Promise<Result<SharedText>> {
      const answer = await api.get(SECRETS, name, signal);
      return answer.ok ? ok(textOf(answer.value)) : answer;
    },
    async write(before: SharedText, text: string, signal: AbortSignal): Promise<Result<KubeObject>> {
      const data = { [KEY]: Buffer.from(text).toString('base64') };
      return await api.mergePatch(SECRETS, name, { metadata: { resourceVersion: before.version }, data }, signal);
    },
  };
}

export function createTokenSecret({ api, name, log, ...options }: TokenSecretOptions): TokenSecret {
  const requests = createTokenRequests(api, name);
  const reflector = createReflector({
    ...options,
    api,
    type: SECRETS,
    fieldSelector: `metadata.name=${name}`,
    transform: onlyTokens,
    relistMs: RELIST_MS,
  });
  const textOnce = parseOnce(textOf);
  let outage: string | undefined;

  function copy(): SharedText | undefined {
    if (!wasListed(reflector)) return undefined;
    const object = reflector.items().get(name);
    return object === undefined ? ABSENT : textOnce(object);
  }

  function logOutage(): void {
    const health = reflector.health();
    const next = health.kind === 'unreachable' ? health.message : undefined;
    if (next !== undefined && outage === undefined) {
      const effect = copy() === undefined ? 'No token is accepted until it was read' : 'Tokens stay valid as they were last read';
      log.warn({ tokens: requests.name }, `Cannot watch ${requests.name}: ${next}. ${effect}`);
    } else if (next === undefined && outage !== undefined) {
      log.info({ tokens: requests.name }, `The tokens are up to date again: ${requests.name} can be watched`);
    }
    outage = next;
  }

  return {
    ...requests,
    copy,
    async write(before, text, signal) {
      const written = await requests.write(before, text, signal);
      if (!written.ok) return written;
      reflector.noteWritten(written.value);
      return ok(undefined);
    },
    changes: (wake, signal) => reflector.changes(wake, signal),
    start(signal) {
      reflector.changes(logOutage, signal);
      reflector.start(signal);
    },
  };
}

function onlyTokens({ metadata: { name, uid, resourceVersion }, data }: KubeObject): KubeObject {
  return { metadata: defined({ name, uid, resourceVersion }), data: isTable(data) ? { [KEY]: data[KEY] } : {} };
}

/** Another write of the Secret, for example of a label, yields another version of the same text. */
function textOf({ metadata, data }: KubeObject): SharedText {
  const encoded = valueAt(data, KEY);
  return {
    text: typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString('utf8') : '',
    version: metadata.resourceVersion ?? '',
  };
}

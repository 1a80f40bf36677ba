import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createObjectCopy } from '../../../src/cluster/client/object-copy.ts';
import type { KubeObject } from '../../../src/cluster/client/ports.ts';

/** A server with a history, and a watch that lags behind. */
function createServer() {
  const objects = new Map<string, KubeObject>();
  const events: { readonly type: string; readonly object: KubeObject }[] = [];
  let version = 98;
  let seen = 0;
  const record = (type: string, object: KubeObject): KubeObject => {
    events.push({ type, object });
    return object;
  };
  return {
    write(name: string): KubeObject {
      version += 1;
      const held = objects.get(name);
      const uid = held?.metadata.uid ?? `uid-${version}`;
      const object = { metadata: { name, uid, resourceVersion: String(version) } };
      objects.set(name, object);
      return record(held === undefined ? 'ADDED' : 'MODIFIED', object);
    },
    remove(name: string): string | undefined {
      const held = objects.get(name);
      if (held === undefined) return undefined;
      version += 1;
      objects.delete(name);
      record('DELETED', { metadata: { ...held.metadata, resourceVersion: String(version) } });
      return held.metadata.uid;
    },
    list: () => ({ items: [...objects.values()], resourceVersion: String(version) }),
    /** The watch continues from the last list. */
    rewind: (from: string) => (seen = events.findLastIndex(({ object }) => Number(object.metadata.resourceVersion) <= Number(from)) + 1),
    next: () => (seen < events.length ? events[seen++] : undefined),
    uids: () =>
      Object.fromEntries([...objects.values()].map(({ metadata }) => [metadata.name, `${metadata.uid}@${metadata.resourceVersion}`])),
  };
}

const uidsOf = (copy: ReturnType<typeof createObjectCopy>) =>
  Object.fromEntries([...copy.items().values()].map(({ metadata }) => [metadata.name, `${metadata.uid}@${metadata.resourceVersion}`]));

const step = fc.record({
  what: fc.constantFrom('theirs', 'theirs-removed', 'ours', 'ours-removed', 'event', 'event', 'event', 'list', 'list-while-writing'),
  name: fc.constantFrom('a', 'b', 'c'),
});

describe('createObjectCopy()', () => {
  test('reports once whether a change is urgent, as every removal is', () => {
    const copy = createObjectCopy(
      (object) => object,
      (before, { spec }) => before?.['spec'] !== spec,
    );
    const event = (type: string, resourceVersion: string, spec: string, status: string): void =>
      void copy.fold({ type, object: { metadata: { name: 'a', uid: 'u', resourceVersion }, spec, status } });
    event('ADDED', '1', 'x', '1');
    expect([copy.consumeUrgency(), copy.consumeUrgency()]).toEqual([true, false]);
    event('MODIFIED', '2', 'x', '2');
    expect(copy.consumeUrgency()).toBe(false);
    event('MODIFIED', '3', 'y', '2');
    event('MODIFIED', '4', 'y', '3');
    expect(copy.consumeUrgency()).toBe(true);
    event('DELETED', '5', 'y', '3');
    expect(copy.consumeUrgency()).toBe(true);
  });

  test('stores each new version, and reports a change only if stored content differs', () => {
    const copy = createObjectCopy(({ metadata, spec }) => ({ metadata, spec }));
    const modified = (resourceVersion: string, rest: object) =>
      copy.fold({ type: 'MODIFIED', object: { metadata: { name: 'a', uid: 'u', resourceVersion }, ...rest } }).changed;
    expect(modified('1', { spec: { replicas: 1 }, status: { replicas: 0 } })).toBe(true);
    expect(modified('2', { spec: { replicas: 1 }, status: { replicas: 1 } })).toBe(false);
    expect(copy.items().get('a')?.metadata.resourceVersion).toBe('2');
    expect(modified('3', { spec: { replicas: 2 }, status: { replicas: 1 } })).toBe(true);
  });

  test('agrees with the server once all events have arrived, whatever was written by whom and when', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const server = createServer();
        const copy = createObjectCopy((object) => object);
        const removeOurs = (name: string): void => {
          const uid = server.remove(name);
          if (uid !== undefined) copy.noteRemoved(name, uid);
        };
        const list = (meanwhile: () => void): void => {
          const begun = copy.beginList();
          const answer = server.list();
          meanwhile();
          copy.replaceAll(answer, begun);
          server.rewind(answer.resourceVersion);
        };
        const drain = (): void => {
          for (let event = server.next(); event !== undefined; event = server.next()) copy.fold(event);
        };
        list(() => undefined);
        for (const { what, name } of steps) {
          if (what === 'theirs') server.write(name);
          else if (what === 'theirs-removed') server.remove(name);
          else if (what === 'ours') {
            const written = server.write(name);
            copy.noteWritten(written);
            expect(copy.items().get(name)).toBe(written);
          } else if (what === 'ours-removed') removeOurs(name);
          else if (what === 'list') list(() => undefined);
          else if (what === 'list-while-writing') list(() => void copy.noteWritten(server.write(name)));
          else copy.fold(server.next() ?? { type: 'BOOKMARK', object: { metadata: { resourceVersion: '98' } } });
        }
        drain();
        expect(uidsOf(copy)).toEqual(server.uids());
      }),
      { numRuns: 500 },
    );
  });

  test('never goes back to an older version of an object while events arrive in order', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const server = createServer();
        const copy = createObjectCopy((object) => object);
        copy.replaceAll(server.list(), copy.beginList());
        const newest = new Map<string, number>();
        for (const { what, name } of steps) {
          if (what.startsWith('theirs')) server.write(name);
          else if (what.startsWith('ours')) copy.noteWritten(server.write(name));
          else {
            const event = server.next();
            if (event !== undefined) copy.fold(event);
          }
          for (const { metadata } of copy.items().values()) {
            const version = Number(metadata.resourceVersion);
            expect(version).toBeGreaterThanOrEqual(newest.get(metadata.name) ?? 0);
            newest.set(metadata.name, version);
          }
        }
      }),
    );
  });

  test('keeps what we write while a list is read, since it is newer than the list', () => {
    const server = createServer();
    const copy = createObjectCopy((object) => object);
    copy.noteWritten(server.write('changed'));
    const begun = copy.beginList();
    const list = server.list();
    copy.noteWritten(server.write('changed'));
    copy.noteWritten(server.write('new'));
    copy.replaceAll(list, begun);
    expect(uidsOf(copy)).toEqual(server.uids());
    copy.replaceAll({ items: [], resourceVersion: '999' }, copy.beginList());
    expect(copy.items().size).toBe(0);
  });

  test('ignores a late event about the removal of an earlier object with the same name', () => {
    const server = createServer();
    const copy = createObjectCopy((object) => object);
    server.write('a');
    copy.fold(server.next());
    server.remove('a');
    const made = server.write('a');
    copy.noteWritten(made);
    const { changed } = copy.fold(server.next());
    expect([changed, copy.items().get('a')]).toEqual([false, made]);
  });

  test('accepts the lower versions of a server that was restored from a backup', () => {
    const copy = createObjectCopy((object) => object);
    const object = (name: string, resourceVersion: string): KubeObject => ({ metadata: { name, uid: name, resourceVersion } });
    copy.replaceAll({ items: [object('a', '900'), object('b', '901')], resourceVersion: '901' }, copy.beginList());
    copy.noteWritten(object('a', '950'));
    copy.replaceAll({ items: [object('a', '100')], resourceVersion: '120' }, copy.beginList());
    expect([...copy.items().values()].map(({ metadata }) => metadata.resourceVersion)).toEqual(['100']);
    expect(copy.resourceVersion()).toBe('120');
  });

  test('shows an object that a finalizer keeps after our removal again with the next list', () => {
    const copy = createObjectCopy((object) => object);
    const held = { metadata: { name: 'a', uid: 'u', resourceVersion: '5' } };
    copy.replaceAll({ items: [held], resourceVersion: '5' }, copy.beginList());
    copy.noteRemoved('a', 'u');
    copy.fold({ type: 'MODIFIED', object: { metadata: { ...held.metadata, resourceVersion: '6' } } });
    expect(copy.items().size).toBe(0);
    copy.replaceAll({ items: [held], resourceVersion: '6' }, copy.beginList());
    expect(copy.items().size).toBe(1);
  });

  test.each([
    ['no object', 'text'],
    ['an error without a code', { type: 'ERROR', object: { message: 'etcd is gone' } }],
    ['an object without a name', { type: 'ADDED', object: { metadata: {} } }],
    ['an object with invalid labels', { type: 'ADDED', object: { metadata: { name: 'a', labels: ['x'] } } }],
    ['null', null],
  ])('%s instead of an event changes nothing and fails the watch', (_, event) => {
    const copy = createObjectCopy((object) => object);
    copy.replaceAll({ items: [], resourceVersion: '5' }, copy.beginList());
    const { step: result, changed } = copy.fold(event);
    expect([result.kind, changed, copy.items().size, copy.resourceVersion()]).toEqual(['failed', false, 0, '5']);
  });
});

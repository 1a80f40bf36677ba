import { describe, expect, test } from '@jest/globals';
import { parse } from 'smol-toml';
import { baseUrlOf, fileOfPeerSlot, peerNameOf, peerOf, peerOfFile, slotsListed, joinPeers } from '../../../src/cli/decide/peers.ts';
import { toCamelCase } from '../../../src/schema/words/key-case.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { SlotName } from '../../../src/schema/words/names.ts';

const PIN = `sha256:${'1a'.repeat(32)}`;
const found = { name: 'gpu-box-8080', host: 'gpu-box.local', port: 8080, addresses: ['fe80::1', '192.0.2.7'], txt: { version: '0.2.0' } };

describe('an announcement', () => {
  test.each([
    ['has the first address of IPv4, if it has no URL', found, { name: 'gpu-box', url: 'http://192.0.2.7:8080', version: '0.2.0' }],
    [
      'has a URL that counts',
      { ...found, txt: { url: 'https://gpu.example.com/svc/' } },
      { name: 'gpu-box', url: 'https://gpu.example.com/svc' },
    ],
    ['has a URL that nobody can use', { ...found, txt: { url: 'file:///etc/passwd' } }, { name: 'gpu-box', url: 'http://192.0.2.7:8080' }],
    [
      'has a version with control characters',
      { ...found, txt: { version: '1\u001B[31m' } },
      { name: 'gpu-box', url: 'http://192.0.2.7:8080' },
    ],
    ['has only an address of IPv6', { ...found, addresses: ['fd00::2'], txt: {} }, { name: 'gpu-box', url: 'http://[fd00::2]:8080' }],
    ['has no address at all', { ...found, addresses: ['fe80::1'] }, undefined],
    ['has a host without letters', { ...found, host: '\u0000..' }, undefined],
  ])('%s', (_what, announced, peer) => {
    expect(peerOf(announced)).toEqual(peer);
  });
});

test.each([
  ['gpu-box.local', 'gpu-box'],
  ['GPU_Box', 'gpu-box'],
  ['192.0.2.7', 'host-192-0-2-7'],
  ['[fd00::2]', 'host-fd00-2'],
  [`${'a'.repeat(40)}.local`, 'a'.repeat(30)],
  ['---', undefined],
])('the host "%s" gives the name "%s"', (host, name) => {
  expect(peerNameOf(host)).toBe(name);
});

test.each([
  ['https://gpu-box.local:8443/v1', 'https://gpu-box.local:8443'],
  ['http://192.0.2.7:8080/', 'http://192.0.2.7:8080'],
  ['https://example.com/svc/v1/', 'https://example.com/svc'],
  ['https://user:secret@example.com', undefined],
  ['https://example.com/?key=1', undefined],
  ['gpu-box', undefined],
])('the base of "%s" is "%s"', (text, base) => {
  expect(baseUrlOf(text)).toBe(base);
});

describe('the slots in a list of models', () => {
  test('are each named once', () => {
    const list = { data: [{ slots: [{ name: 'primary' }] }, { slots: [{ name: 'primary' }, { name: 'embed' }] }] };
    expect(slotsListed(list)).toEqual(['primary', 'embed']);
  });

  test.each([
    ['no list', []],
    ['text', 'models'],
    ['a list of another service', { data: [{ id: 'gpt-4o' }] }],
    ['names that no slot can have', { data: [{ slots: [{ name: '../../etc' }, { name: 'a\nb' }, { name: 7 }, null] }, null] }],
  ])('are none in %s', (_what, list) => {
    expect(slotsListed(list)).toEqual([]);
  });
});

describe('the file of a slot of a peer', () => {
  const access = { name: 'gpu-box', url: 'https://gpu-box.local:8443', credentialFile: '/etc/svc/keys/gpu-box', fingerprint: PIN };
  const file = fileOfPeerSlot(access, SlotName.parse('primary'));

  test('is a valid slot with its two names', () => {
    const parsed = parseSlot(SlotName.parse('gpu-box-primary'), toCamelCase(parse(file?.text ?? '')));
    expect([file?.slot, parsed]).toMatchObject([
      'gpu-box-primary',
      { ok: true, spec: { provider: 'remote', model: { default: 'primary', aliases: ['gpu-box/primary'] }, remote: { fingerprint: PIN } } },
    ]);
  });

  test('is recognised', () => {
    expect(peerOfFile('gpu-box-primary', file?.text ?? '')).toEqual({ name: 'gpu-box', url: 'https://gpu-box.local:8443' });
  });

  test.each([
    ['another name', 'big', file?.text ?? ''],
    ['another provider', 'gpu-box-primary', (file?.text ?? '').replace('"remote"', '"gguf"')],
    ['a mistake', 'gpu-box-primary', `${file?.text}=`],
  ])('is not one with %s', (_what, slot, text) => {
    expect(peerOfFile(slot, text)).toBeUndefined();
  });

  test('does not exist where the name would be too long', () => {
    expect(fileOfPeerSlot({ ...access, name: 'a'.repeat(30) }, SlotName.parse('b'.repeat(40)))).toBeUndefined();
  });
});

describe('joinPeers()', () => {
  const announced = { name: 'vm', url: 'https://10.0.0.2:8443', version: '0.2.0' };
  const file = (slot: string, name: string, url: string) => ({ slot, peer: { name, url } });

  test.each([
    ['nothing', [], [], []],
    ['a new one', [announced], [], [{ ...announced, announced: true, slots: [] }]],
    [
      'one that has another name here',
      [announced],
      [file('box-a', 'box', announced.url), file('box-b', 'box', announced.url)],
      [{ ...announced, name: 'box', announced: true, slots: ['box-a', 'box-b'] }],
    ],
    [
      'one whose URL has changed: the announced one is shown',
      [announced],
      [file('vm-a', 'vm', 'https://10.0.0.9:8443')],
      [{ ...announced, announced: true, slots: ['vm-a'] }],
    ],
    [
      'one that does not announce itself, by name',
      [announced],
      [file('a-a', 'a', 'https://a.test')],
      [
        { name: 'a', url: 'https://a.test', announced: false, slots: ['a-a'] },
        { ...announced, announced: true, slots: [] },
      ],
    ],
  ])('lists %s', (_what, found, files, expected) => expect(joinPeers(found, files)).toEqual(expected));
});

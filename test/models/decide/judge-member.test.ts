import { describe, expect, test } from '@jest/globals';
import { judgeMember, unpackLimits, type ArchiveMember } from '../../../src/models/decide/judge-member.ts';

const LIMITS = { bytes: 1000, members: 10 };
const NOTHING = { bytes: 0, members: 0 };
const judge = (member: Partial<ArchiveMember>, soFar = NOTHING) =>
  judgeMember({ name: 'model.onnx', type: 'file', sizeBytes: 1, ...member }, soFar, LIMITS);

describe('a member of an archive', () => {
  test.each<readonly [Partial<ArchiveMember>, unknown]>([
    [{ name: 'm/encoder.onnx' }, { kind: 'file', path: 'm/encoder.onnx' }],
    [{ name: './m//encoder.onnx' }, { kind: 'file', path: 'm/encoder.onnx' }],
    [{ name: 'm/voix féminine.bin' }, { kind: 'file', path: 'm/voix féminine.bin' }],
    [{ name: 'm/..hidden' }, { kind: 'file', path: 'm/..hidden' }],
    [
      { name: 'm/', type: 'directory' },
      { kind: 'directory', path: 'm' },
    ],
    [{ name: './', type: 'directory' }, { kind: 'skip' }],
    [{ name: 'm/._encoder.onnx' }, { kind: 'skip' }],
    [
      { name: 'm/a', type: 'symlink', linkName: 'b' },
      { kind: 'link', path: 'm/a', target: 'm/b' },
    ],
    [
      { name: 'm/x/a', type: 'symlink', linkName: '../b' },
      { kind: 'link', path: 'm/x/a', target: 'm/b' },
    ],
    [
      { name: 'm/a', type: 'link', linkName: 'm/b' },
      { kind: 'link', path: 'm/a', target: 'm/b' },
    ],
  ])('%j becomes %j', (member, verdict) => {
    expect(judge(member)).toEqual(verdict);
  });

  test.each<readonly [string, Partial<ArchiveMember>]>([
    ['out of the directory', { name: '../model.onnx' }],
    ['out of the directory from below', { name: 'm/x/../../../model.onnx' }],
    ['with ".." although it stays inside', { name: 'm/../model.onnx' }],
    ['an absolute path', { name: '/etc/cron.d/model' }],
    ['a path of another system', { name: 'm\\..\\..\\model.onnx' }],
    ['a control character', { name: 'm/a\nb' }],
    ['NUL', { name: 'm/a\0b' }],
    ['text that is written in the other direction', { name: 'm/\u202Exnno.ledom' }],
    ['a name that no file system has', { name: 'm/'.concat('a'.repeat(256)) }],
    ['a path of more than 16 parts', { name: 'd/'.repeat(17).concat('a') }],
    ['a path of more than 1000 bytes', { name: `${'x'.repeat(200)}/`.repeat(5).concat('a') }],
    ['the name of the list', { name: 'm/.svc-files.json' }],
    ['a link out of the directory', { name: 'm/a', type: 'symlink', linkName: '../../b' }],
    ['a link to an absolute path', { name: 'm/a', type: 'symlink', linkName: '/etc/passwd' }],
    ['a link to the directory itself', { name: 'm/a', type: 'symlink', linkName: '..' }],
    ['a hard link out of the directory', { name: 'm/a', type: 'link', linkName: '../b' }],
    ['a link to nothing', { name: 'm/a', type: 'link' }],
    ['a device', { name: 'm/null', type: 'character-device' }],
    ['a disk', { name: 'm/sda', type: 'block-device' }],
    ['a pipe', { name: 'm/pipe', type: 'fifo' }],
    ['more bytes than are allowed', { sizeBytes: 1001 }],
  ])('is refused with %s', (_, member) => {
    expect(judge(member)).toMatchObject({ kind: 'refuse', message: expect.not.stringMatching(/\p{C}/u) });
  });

  test('is refused when the members before it have used up the limits', () => {
    expect(judge({ sizeBytes: 1 }, { bytes: 999, members: 9 })).toMatchObject({ kind: 'file' });
    expect(judge({ sizeBytes: 1 }, { bytes: 1000, members: 9 })).toMatchObject({ kind: 'refuse' });
    expect(judge({ type: 'directory' }, { bytes: 0, members: 10 })).toMatchObject({ kind: 'refuse' });
  });
});

test('the limits are what the source states, otherwise they follow from the size of the archive', () => {
  expect(unpackLimits({ sizeBytes: 1000, unpackedBytes: 5000 }).bytes).toBe(5000);
  expect(unpackLimits({ sizeBytes: 1000 }).bytes).toBe(8000 + 256 * 2 ** 20);
});

test('a refusal quotes the beginning of a name, which may be long', () => {
  const verdict = judge({ name: `../${'a'.repeat(300)}` });
  expect(verdict).toMatchObject({ kind: 'refuse', message: expect.stringContaining(`"../${'a'.repeat(50)}`) });
  expect(verdict).toMatchObject({ message: expect.not.stringContaining('a'.repeat(120)) });
});

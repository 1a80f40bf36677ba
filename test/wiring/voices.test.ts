import { expect, test } from '@jest/globals';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseSettings } from '../../src/schema/settings/settings.ts';
import { VoiceName } from '../../src/schema/words/names.ts';
import { openVoices } from '../../src/wiring/create-api.ts';

test.each(['shared', 'published'] as const)('a host keeps voices in its state directory (network "%s")', async (network) => {
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-voices-'));
  await mkdir(path.join(dir, 'voices', 'broken'), { recursive: true });
  const { warnings, voices } = open(dir, network);
  const voice = { name: VoiceName.parse('anna'), text: '', consent: undefined };
  expect(await voices?.add({ ...voice, recording: Buffer.from('fLaC') })).toEqual({ kind: 'added', voice: { ...voice, createdAt: 5 } });
  expect((await readdir(path.join(dir, 'voices'))).toSorted()).toEqual(['anna', 'broken']);
  expect(warnings).toEqual([expect.stringContaining('; store "broken" again')]);
  await rm(dir, { recursive: true });
});

test('the replicas of a cluster share no directory, so no voices are stored there', () => {
  expect(open('/nowhere', 'pods').voices).toBeUndefined();
});

function open(dir: string, network: 'shared' | 'published' | 'pods') {
  const parsed = parseSettings({ SVC_STATE_DIR: dir });
  if (!parsed.ok) throw new Error(parsed.problems.join());
  const warnings: string[] = [];
  const log = { warn: (_fields: unknown, message?: string) => void warnings.push(message ?? '') };
  const voices = openVoices({ settings: parsed.settings, log }, { runtime: { traits: { network } } }, () => 5);
  return { warnings, voices };
}

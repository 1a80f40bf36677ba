/** Secrets of a repository, and disks without room for its files. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { slotText } from '../../support/git/repository.ts';
import { describeWith } from '../../support/require/describe-with.ts';
import { describeWithMounts, mountSmallDisk } from '../../support/require/require-mounts.ts';
import { openSourceWorld, type SourceWorld } from './source-world.ts';

let world: SourceWorld;
beforeEach(async () => void (world = await openSourceWorld()));
afterEach(async () => await world.dispose());

describeWithMounts('A full disk', () => {
  test('of the configuration or the state leaves what serves, and the commit counts once there is room', async () => {
    for (const what of ['configDir', 'directory'] as const) {
      const disk = mountSmallDisk(2);
      try {
        const place = path.join(disk.path, what);
        await mkdir(path.join(what === 'configDir' ? place : world.config, 'slots'), { recursive: true });
        const source = await world.open({ [what]: place });
        const where = what === 'configDir' ? place : world.config;
        await world.repository.commit('first', { 'slots/primary.toml': slotText(1), 'slots/large.toml': slotText(1) });
        expect(await source.sync()).toMatchObject({ state: 'Synced' });
        const large = Object.fromEntries(
          Array.from({ length: 6 }, (_, index) => [`slots/large${index}.toml`, slotText(2, `# ${'x'.repeat(500_000)}\n`)]),
        );
        await world.repository.commit('large', { 'slots/primary.toml': slotText(2), ...large });
        const full = await source.sync();
        expect([full.state === 'Synced', full.problem?.message]).toEqual([false, expect.stringMatching(/full/)]);
        expect([await world.present('primary', where), await world.present('large0', where)]).toEqual([slotText(1), undefined]);
        disk.resize(64);
        expect(await source.sync()).toMatchObject({ state: 'Synced', problem: null });
        expect(await world.present('primary', where)).toBe(slotText(2));
      } finally {
        disk.dispose();
      }
      await world.dispose();
      world = await openSourceWorld();
    }
  });
});

const AGE = spawnSync('age-keygen', ['--version']).error === undefined;

describeWith({ isThere: AGE, word: 'age', what: 'has age', reason: 'there is no "age": install it' }, 'Secrets', () => {
  const keyFile = (): string => path.join(world.root, 'age.key');
  const secretFile = (name = 'token'): string => path.join(world.root, 'source', 'secrets', name);
  function encrypt(text: string): Buffer {
    const recipient = execFileSync('age-keygen', ['-y', keyFile()], { encoding: 'utf8' }).trim();
    return execFileSync('age', ['--encrypt', '--recipient', recipient], { input: text });
  }
  beforeEach(() => void execFileSync('age-keygen', ['--output', keyFile()], { stdio: 'ignore' }));

  test('are decrypted into the state directory, for the service only, and change and go with their commits', async () => {
    const source = await world.open({ decrypt: ['age', '--decrypt', '--identity', keyFile()], selfHeal: 'on' });
    await world.repository.commit('first', {
      'slots/primary.toml': slotText(1),
      'secrets/token.age': encrypt('hunter2'),
      'secrets/README.md': 'x',
    });
    expect(await source.sync()).toMatchObject({ state: 'Synced', files: [{ path: 'secrets/token', slot: null }, {}] });
    expect(await readFile(secretFile(), 'utf8')).toBe('hunter2');
    expect((await stat(secretFile())).mode & 0o777).toBe(0o600);
    expect(existsSync(path.join(world.config, 'secrets'))).toBe(false);
    await world.repository.commit('second', { 'secrets/token.age': encrypt('hunter3') });
    await source.source.setSuspended(true);
    await writeFile(secretFile(), 'other');
    expect((await source.source.diff()).files).toEqual([{ path: 'secrets/token', before: '(hidden)', after: '(hidden)' }]);
    await source.source.setSuspended(false);
    await source.sync();
    expect(await readFile(secretFile(), 'utf8')).toBe('hunter3');
    await world.repository.commit('third', { 'secrets/token.age': null });
    await source.sync();
    expect(existsSync(secretFile())).toBe(false);
    expect(world.logged.join()).not.toContain('hunter');
  });

  test('that are not encrypted, or cannot be decrypted, refuse the commit as a whole; with the key, it counts', async () => {
    const encrypted = encrypt('hunter2');
    const files = { 'slots/primary.toml': slotText(1), 'secrets/token.age': encrypted };
    const first = await world.repository.commit('first', files);
    const without = await world.open();
    expect((await without.sync()).problem).toMatchObject({
      commit: first,
      message: expect.stringContaining('secrets/token.age: "SVC_GIT_DECRYPT" is not set'),
    });
    const right = await readFile(keyFile(), 'utf8');
    await rm(keyFile());
    execFileSync('age-keygen', ['--output', keyFile()], { stdio: 'ignore' });
    const source = await world.open({ decrypt: ['age', '--decrypt', '--identity', keyFile()] });
    expect((await source.sync()).problem?.message).toContain('secrets/token.age: "age" cannot decrypt this file');
    expect(await world.present()).toBeUndefined();
    await writeFile(keyFile(), right);
    expect(await source.sync()).toMatchObject({ state: 'Synced', problem: null });
    await world.repository.commit('plain', { 'secrets/token.age': 'hunter2', 'slots/primary.toml': slotText(2) });
    expect((await source.sync()).problem?.message).toContain('This file is not encrypted with age or sops');
    expect([await world.present(), await readFile(secretFile(), 'utf8')]).toEqual([slotText(1), 'hunter2']);
    const missing = await world.open({ decrypt: ['no-such-program'] });
    await world.repository.commit('again', { 'secrets/token.age': encrypted });
    expect((await missing.sync()).problem?.message).toContain('The program "no-such-program" of "SVC_GIT_DECRYPT" is not installed');
  });
});

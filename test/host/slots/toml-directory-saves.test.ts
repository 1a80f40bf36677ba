/** The ways in which programs save a file: each must wake the source and lead to the new spec. */
import { spawnSync } from 'node:child_process';
import { appendFile, mkdir, open, rename, rm, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { watch } from 'chokidar';
import { createSlotDirectory, modelOf, QUIET_PERIOD_MS, slot, slotText } from './slot-directory.ts';

const has = (program: string) => spawnSync('which', [program]).status === 0;
const run = (program: string, args: readonly string[], input?: string) => {
  const result = spawnSync(program, args, { encoding: 'utf8', timeout: 10_000, ...(input === undefined ? {} : { input }) });
  expect({ program, status: result.status, stderr: result.stderr }).toMatchObject({ status: 0 });
};

describe('createTomlDirectory().changes()', () => {
  let slots: Awaited<ReturnType<typeof createSlotDirectory>>;
  let path: string;
  beforeEach(async () => {
    slots = await createSlotDirectory();
    path = join(slots.directory, 'primary.toml');
    await slots.write('primary.toml', slotText('a.gguf'));
    await slots.watch();
    await slots.reach((state) => modelOf(state, 'primary') === 'a.gguf');
  });
  afterEach(async () => await slots.close());

  const SAVES: Readonly<Record<string, (text: string) => Promise<void>>> = {
    'in place, as nano, VS Code and a shell do': async (text) => await writeFile(path, text),
    'in place, in two halves': async (text) => {
      const handle = await open(path, 'w');
      await handle.write(text.slice(0, 9));
      await sleep(8);
      await handle.write(text.slice(9));
      await handle.close();
    },
    'by a temporary file and a rename, as sed -i and most tools do': async (text) => {
      await writeFile(join(slots.directory, 'sedAb12Cd'), text);
      await rename(join(slots.directory, 'sedAb12Cd'), path);
    },
    'by moving the old one away first, as vim does': async (text) => {
      await writeFile(join(slots.directory, '4913'), '');
      await unlink(join(slots.directory, '4913'));
      await rename(path, `${path}~`);
      await writeFile(path, text);
      await unlink(`${path}~`);
    },
    'by deleting and creating it': async (text) => {
      await unlink(path);
      await sleep(3);
      await writeFile(path, text);
    },
    'by truncating and appending': async (text) => {
      await truncate(path, 0);
      await appendFile(path, text);
    },
    'from another directory by a rename': async (text) => {
      await writeFile(join(slots.root, 'elsewhere.toml'), text);
      await rename(join(slots.root, 'elsewhere.toml'), path);
    },
  };

  test.each(Object.keys(SAVES))('sees a file saved %s, and never reports the slot as missing', async (how) => {
    for (const model of ['b.gguf', 'c.gguf']) {
      await SAVES[how]?.(slotText(model));
      await slots.reach((state) => {
        expect(slot(state, 'primary')).toBeDefined();
        expect(slot(state, 'primary')?.problems).toEqual([]);
        return modelOf(state, 'primary') === model;
      });
    }
    expect(slot(await slots.read(), 'primary')?.generation).toBe(3);
  });

  (has('sed') ? test : test.skip)('sees what the real sed -i saves', async () => {
    run('sed', ['-i', 's/a.gguf/b.gguf/', path]);
    await slots.reach((state) => modelOf(state, 'primary') === 'b.gguf');
  });

  (has('vim') ? test : test.skip)('sees what the real vim saves, with each of its backup methods', async () => {
    for (const [option, model] of [
      ['set backupcopy=no', 'b.gguf'],
      ['set backupcopy=yes', 'c.gguf'],
      ['set backup', 'd.gguf'],
    ] as const) {
      run('vim', ['-N', '-u', 'NONE', '-e', '-s', '-c', option, '-c', `%s/[a-z].gguf/${model}/`, '-c', 'wq', path]);
      await slots.reach((state) => modelOf(state, 'primary') === model);
    }
    expect((await slots.read()).problems).toEqual([]);
  });

  (has('ed') ? test : test.skip)('sees what the real ed saves', async () => {
    run('ed', ['-s', path], ',s/a.gguf/b.gguf/\nw\nq\n');
    await slots.reach((state) => modelOf(state, 'primary') === 'b.gguf');
  });

  test('sees a ConfigMap replaced through its "..data" link, twice', async () => {
    const version = async (number: number, model: string) => {
      await mkdir(join(slots.directory, `..v${number}`));
      await writeFile(join(slots.directory, `..v${number}`, 'embed.toml'), slotText(model));
      await symlink(`..v${number}`, join(slots.directory, '..data_tmp'));
      await rename(join(slots.directory, '..data_tmp'), join(slots.directory, '..data'));
      if (number > 1) await rm(join(slots.directory, `..v${number - 1}`), { recursive: true });
    };
    await version(1, 'one.gguf');
    await symlink('..data/embed.toml', join(slots.directory, 'embed.toml'));
    await slots.reach((state) => modelOf(state, 'embed') === 'one.gguf');
    await version(2, 'two.gguf');
    await slots.reach((state) => modelOf(state, 'embed') === 'two.gguf');
    await version(3, 'three.gguf');
    await slots.reach((state) => modelOf(state, 'embed') === 'three.gguf');
    expect(slot(await slots.read(), 'embed')?.generation).toBe(3);
  });

  test('sees edits of a file behind a symbolic link, and a change of the link itself', async () => {
    const one = join(slots.root, 'one.toml');
    await writeFile(one, slotText('one.gguf'));
    await symlink(one, join(slots.directory, 'embed.toml'));
    await slots.reach((state) => modelOf(state, 'embed') === 'one.gguf');
    await writeFile(one, slotText('other.gguf'));
    await slots.reach((state) => modelOf(state, 'embed') === 'other.gguf');
    await writeFile(join(slots.root, 'two.toml'), slotText('two.gguf'));
    await symlink(join(slots.root, 'two.toml'), join(slots.root, 'link'));
    await rename(join(slots.root, 'link'), join(slots.directory, 'embed.toml'));
    await slots.reach((state) => modelOf(state, 'embed') === 'two.gguf');
  });

  test('keeps watching a directory that is deleted and created again, or replaced by another one', async () => {
    await rm(slots.directory, { recursive: true });
    await slots.reach((state) => slot(state, 'primary')?.problems.length === 1);
    await mkdir(slots.directory);
    await writeFile(path, slotText('b.gguf'));
    await slots.reach((state) => modelOf(state, 'primary') === 'b.gguf');
    await mkdir(join(slots.root, 'next'));
    await writeFile(join(slots.root, 'next', 'primary.toml'), slotText('c.gguf'));
    await rename(slots.directory, join(slots.root, 'previous'));
    await rename(join(slots.root, 'next'), slots.directory);
    await slots.reach((state) => modelOf(state, 'primary') === 'c.gguf');
    await writeFile(path, slotText('d.gguf'));
    await slots.reach((state) => modelOf(state, 'primary') === 'd.gguf');
  });

  test('keeps watching where the directory above it is replaced by another one', async () => {
    const above = dirname(slots.directory);
    await mkdir(join(slots.root, 'next', 'slots'), { recursive: true });
    await writeFile(join(slots.root, 'next', 'slots', 'primary.toml'), slotText('b.gguf'));
    await rename(above, join(slots.root, 'previous'));
    await rename(join(slots.root, 'next'), above);
    await slots.reach((state) => modelOf(state, 'primary') === 'b.gguf');
    await writeFile(path, slotText('c.gguf'));
    await slots.reach((state) => modelOf(state, 'primary') === 'c.gguf');
  });

  test('keeps watching a directory that is created again at once, so that the system may give it the same number', async () => {
    for (const [first, second] of [
      ['b.gguf', 'c.gguf'],
      ['d.gguf', 'e.gguf'],
    ] as const) {
      await rm(slots.directory, { recursive: true });
      await mkdir(slots.directory);
      await writeFile(path, slotText(first));
      await slots.reach((state) => modelOf(state, 'primary') === first);
      // Longer than the directory is looked at.
      await sleep(700);
      await writeFile(path, slotText(second));
      await slots.reach((state) => modelOf(state, 'primary') === second);
    }
  });

  test('a hundred writes cause few wakes, the last of them with the last text', async () => {
    const before = slots.wakes.count;
    let pauses = 0;
    for (let index = 0, last = performance.now(); index < 100; index++) {
      await writeFile(path, slotText(`m${index}.gguf`));
      await sleep(2);
      // A wake is due in each pause that is as long as the quiet period, which a busy machine makes.
      if (performance.now() - last >= QUIET_PERIOD_MS) pauses += 1;
      last = performance.now();
    }
    await slots.reach((state) => modelOf(state, 'primary') === 'm99.gguf');
    expect(slots.wakes.count - before).toBeLessThan(20 + pauses);
  });
});

describe('createTomlDirectory().changes() where the system cannot watch', () => {
  test('logs that and polls', async () => {
    const slots = await createSlotDirectory({
      watch: (path, options) => {
        const watcher = watch(path, options);
        if (options.backend !== 'polling') {
          const error = Object.assign(new Error('System limit for number of file watchers reached'), { code: 'ENOSPC' });
          setImmediate(() => watcher.emit('error', error));
        }
        return watcher;
      },
    });
    try {
      await slots.write('primary.toml', slotText('a.gguf'));
      await slots.watch();
      await slots.reach((state) => modelOf(state, 'primary') === 'a.gguf');
      expect(slots.warnings).toEqual([expect.stringContaining('polling it twice a second')]);
      await sleep(700);
      await slots.write('primary.toml', slotText('b.gguf'));
      await slots.reach((state) => modelOf(state, 'primary') === 'b.gguf');
    } finally {
      await slots.close();
    }
  });
});

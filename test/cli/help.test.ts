import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { createTerminal } from '../../src/cli/output/terminal.ts';
import { runSvcctl } from '../../src/cli/program.ts';
import { VERBS } from '../../src/cli/verb-table.ts';

const LINES = VERBS.flatMap((entry) => [entry.name, ...('load' in entry ? [] : entry.verbs.map(({ name }) => `${entry.name} ${name}`))]);

/** The help on a terminal of this width; undefined for a pipe. */
async function helpOf(words: string, columns?: number): Promise<string> {
  const stdout = Object.assign(new PassThrough(), columns === undefined ? {} : { isTTY: true, columns });
  const unused = async (): Promise<never> => Promise.reject(new Error('Not used'));
  const terminal = createTerminal({ stdout, stderr: new PassThrough(), env: { NO_COLOR: '1' } });
  const argv = [...words.split(' ').filter((word) => word !== ''), '--help'];
  expect(await runSvcctl(argv, { terminal, env: {}, connect: unused, readInput: unused, now: () => 0 })).toBe(0);
  return String(stdout.read());
}

test.each(['', ...LINES])('the help of "svcctl %s" fits in 100 columns, on a wider terminal too', async (words) => {
  for (const columns of [undefined, 200]) {
    const help = await helpOf(words, columns);
    expect(help).toMatch(/^Usage: svcctl/);
    expect(help.split('\n').filter((line) => line.length > 100)).toEqual([]);
  }
});

test('the help of a narrow terminal is narrow', async () => {
  const lines = (await helpOf('get', 80)).split('\n');
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});
